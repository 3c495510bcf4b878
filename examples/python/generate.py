"""Continues a text and prints it as it is drawn: generate.py [MODEL [TEXT]]

    PYTHONPATH=python python3 examples/python/generate.py wiki11m "The history of Rome"
"""
import sys

import lamemo

model = lamemo.Model(sys.argv[1] if len(sys.argv) > 1 else "wiki11m")
prompt = sys.argv[2] if len(sys.argv) > 2 else "The history of Rome"
for piece in model(prompt, max_tokens=200, temperature=0.8, seed=1, echo=True, stream=True):
    print(piece, end="", flush=True)
print()
