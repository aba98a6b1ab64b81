#!/usr/bin/env bash
# Tries clients that are too large for the tests (Codex, Claude Code: some hundred MB each) against a running server. They are
# installed into FOLDER, where their settings stay too.
#
#   tools/clients/large-clients.sh http://127.0.0.1:8000 MODEL FOLDER
set -euo pipefail
url="$1" model="$2" folder="$3"
mkdir -p "$folder/home/.codex" "$folder/work"

npm install --silent --prefix "$folder" @openai/codex @anthropic-ai/claude-code
(cd "$folder/node_modules/@anthropic-ai/claude-code" && node install.cjs)

cat > "$folder/home/.codex/config.toml" <<TOML
model = "$model"
model_provider = "skein"
[model_providers.skein]
name = "Skein"
base_url = "$url/v1"
wire_api = "responses"
TOML
cd "$folder/work"
export HOME="$folder/home"

echo "Codex:"
"$folder/node_modules/.bin/codex" exec --skip-git-repo-check "Say hi" < /dev/null

echo "Claude Code, with few instructions, since small models have short contexts:"
export ANTHROPIC_BASE_URL="$url" ANTHROPIC_AUTH_TOKEN=none ANTHROPIC_MODEL="$model"
export ANTHROPIC_DEFAULT_HAIKU_MODEL="$model" CLAUDE_CODE_MAX_OUTPUT_TOKENS=2000
"$folder/node_modules/.bin/claude" -p "Say hi" --system-prompt "Be brief." --tools Read < /dev/null
