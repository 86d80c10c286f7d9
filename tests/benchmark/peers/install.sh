#!/usr/bin/env bash
# install.sh FOLDER: creates a virtual environment with PyTorch and TensorFlow for `lockstep bench --peers`.
set -euo pipefail

TENSORFLOW=tensorflow-cpu==2.21.0
readonly venv="$1"

"$(dirname "$0")/../../../tools/install_torch.sh" "${venv}"
"${venv}/bin/pip" install -q "${TENSORFLOW}"
"${venv}/bin/python3" -c 'import torch.distributed as d; import tensorflow; assert d.is_gloo_available()'
