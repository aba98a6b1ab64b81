#!/usr/bin/env bash
# Tries clients that are too large for the tests (LiteLLM, Codex, Claude Code: some hundred MB each) against a running
# server. They are installed into FOLDER, where their settings stay too.
#
#   tools/clients/large-clients.sh http://127.0.0.1:8000 MODEL FOLDER
set -euo pipefail
url="$1" model="$2" folder="$3"
mkdir -p "$folder/home/.codex" "$folder/work"

[ -x "$folder/venv/bin/python" ] || python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet litellm
npm install --silent --prefix "$folder" @openai/codex @anthropic-ai/claude-code
(cd "$folder/node_modules/@anthropic-ai/claude-code" && node install.cjs)

echo "LiteLLM, by its adapter of Anthropic:"
LITELLM_LOCAL_MODEL_COST_MAP=True "$folder/venv/bin/python" - "$url" "$model" <<'PYTHON'
import sys
import litellm

url, model = sys.argv[1:]
ask = {
    "model": f"anthropic/{model}", "api_base": url, "api_key": "none", "max_tokens": 60, "temperature": 0,
    "messages": [{"role": "user", "content": "What is the capital of France?"}]}
whole = litellm.completion(**ask).choices[0].message.content
parts = [chunk.choices[0].delta.content or "" for chunk in litellm.completion(**ask, stream=True) if chunk.choices]
assert "".join(parts) == whole, (whole, parts)
schema = {"type": "object", "properties": {"city": {"enum": ["Paris", "Rome"]}}, "required": ["city"]}
tool = {"type": "function", "function": {"name": "weather", "parameters": schema}}
called = litellm.completion(**ask, tools=[tool], tool_choice="required", parallel_tool_calls=False)
print(whole, called.choices[0].message.tool_calls[0].function)
PYTHON

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
export ANTHROPIC_DEFAULT_HAIKU_MODEL="$model" CLAUDE_CODE_MAX_OUTPUT_TOKENS=60
"$folder/node_modules/.bin/claude" -p "Say hi" --system-prompt "Be brief." --tools Read < /dev/null
