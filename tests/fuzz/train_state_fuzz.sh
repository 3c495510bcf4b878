#!/usr/bin/env bash
# A state to start from: train_state_fuzz.sh FOLDER
set -euo pipefail
cd "$1"

seed() { # seed NAME BEST SETTINGS
    printf '{"format":1,"step":7,"device":"cpu","position":{"epoch":1,"row":8,"rng":[1111,1919904876,3],"shifts":[0,5]},
"best":{"loss":%s,"step":5},"plateau":{"factor":0.5,"best":null,"bad":1},"eval_step":5,"elapsed":1.5,"grown":false,
"logged":{"nll":2.25,"tokens":64,"aux":0.125},"files":{"metrics":90,"log":80,"events":70,"events_name":"events.out.tfevents.1.x"},
"corpus":{"path":"data","tokens":1000,"crc32":305419896},"settings":{%s}}' "$2" "$3" > "$1"
}
seed first null '"batch_size":2,"max_step":9'
seed later 1.75 '"batch_size":2,"batch_chunk":2,"max_step":9,"seed":-1,"optim":"muon","recipe":"fast","roll":true,"lr":0.5,"short_mem":3'
