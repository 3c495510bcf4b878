#!/usr/bin/env bash
# Small logs to start from: measure_history_fuzz.sh FOLDER
set -euo pipefail
cd "$1"
printf '{"step":10,"loss":2.5,"bpc":3.6,"elapsed":1}\n{"step":20,"loss":null,"elapsed":2}\n' > run
printf '{"step":20,"valid_loss":2.25}\n{"step":10,"valid_loss":7}\n\n[1]\n{"step":3,"lo' > odd
