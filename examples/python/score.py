"""Which tokens of a text surprise a model?  score.py [MODEL [TEXT]]

Prints how many bits each token takes, and the text as a whole.
"""
import math
import sys

import lamemo

model = lamemo.Model(sys.argv[1] if len(sys.argv) > 1 else "wiki11m")
text = sys.argv[2] if len(sys.argv) > 2 else "Rome is the capital of Italy."
tokens = model.tokenize(text)
for token, logprob in zip(tokens, model.score(tokens)):
    bits = -logprob / math.log(2)
    symbol = model.detokenize([token]).decode("utf-8", "backslashreplace")
    print(f"{symbol!r:>8} {bits:6.2f} {'#' * round(bits)}")
print(f"{model.bits_per_byte(text):.4f} bits per byte")
