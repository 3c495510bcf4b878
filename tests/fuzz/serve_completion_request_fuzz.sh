#!/bin/sh
# Seeds: bodies that clients send.
set -eu
cd "$1"
echo '{"prompt":"The history of Rome","max_tokens":64}' > plain
echo '{"model":"m","prompt":[[10,84,104]],"temperature":0,"max_tokens":1,"logprobs":1,"seed":1234,"echo":true}' > scoring
echo '{"prompt":["a","b"],"n":2,"stop":["\n",""],"stream":true,"stream_options":{"include_usage":true},"top_p":0.9}' > stream
echo '{"session":"0123456789abcdef0123456789abcdef","keep":false,"prompt":[1,2],"top_k":-1,"min_p":0.1,"x":null}' > session
