import { execFile, execFileSync } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type SkeinProcess, startServer } from '../support/skein-process.js';
import { testPython } from '../support/test-python.js';

const PACKAGES = `
import json, sys
from anthropic import Anthropic, NotFoundError
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import HumanMessage, ToolMessage
from pydantic import BaseModel
`;

const ANTHROPIC = `${PACKAGES}
class Person(BaseModel):
    age: int

client = Anthropic(base_url=sys.argv[1], api_key="none", max_retries=0)
prompt = {"model": "smol", "messages": [{"role": "user", "content": "What is your name?"}]}
ask = {**prompt, "max_tokens": 48, "extra_body": {"temperature": 0}}
whole = client.messages.create(**ask)
with client.messages.stream(**ask) as stream:
    text = "".join(stream.text_stream)
    final = stream.get_final_message()
tool = {"name": "get_weather", "input_schema": {
    "type": "object", "properties": {"city": {"enum": ["Paris", "Rome"]}}, "required": ["city"]}}
call = client.messages.create(
    **{**ask, "max_tokens": 400}, tools=[tool], tool_choice={"type": "tool", "name": "get_weather"})
parsed = client.messages.parse(**ask, output_format=Person)
with client.messages.create(**{**ask, "max_tokens": 900}, stream=True) as left:
    for event in left:
        if event.type == "content_block_delta":
            break
try:
    client.messages.create(**{**ask, "model": "claude"})
    refused = None
except NotFoundError as error:
    refused = [error.status_code, error.body["error"]["type"], error.request_id]
print(json.dumps({
    "whole": whole.content[0].text,
    "streamed": [text, final.content[0].text],
    "counted": client.messages.count_tokens(**prompt).input_tokens == (
        whole.usage.input_tokens + whole.usage.cache_read_input_tokens),
    "call": [call.stop_reason, call.content[0].name, call.content[0].input],
    "parsed": isinstance(parsed.parsed_output.age, int),
    "refused": refused,
    "models": [model.id for model in client.models.list()],
}))
`;

const LANGCHAIN = `${PACKAGES}
class Person(BaseModel):
    age: int

def get_weather(city: str) -> str:
    "The weather of a city."
    return "rain"

chat = ChatAnthropic(
    model="smol", base_url=sys.argv[1], api_key="none", max_tokens=400, temperature=0, max_retries=0)
question = HumanMessage("What is your name?")
whole = chat.invoke([question])
streamed = None
for chunk in chat.stream([question]):
    streamed = chunk if streamed is None else streamed + chunk
called = chat.bind_tools([get_weather], tool_choice="get_weather", parallel_tool_calls=False).invoke([question])
result = ToolMessage("rain", tool_call_id=called.tool_calls[0]["id"])
after = chat.bind_tools([get_weather]).invoke([question, called, result])
person = chat.with_structured_output(Person, method="json_schema").invoke("A person as JSON.")
try:
    chat.invoke("word " * 9000)
    refused = None
except Exception as error:
    refused = str(error)
print(json.dumps({
    "whole": whole.content,
    "same": streamed.content == whole.content and
        streamed.usage_metadata["output_tokens"] == whole.usage_metadata["output_tokens"],
    "calls": [call["name"] for call in called.tool_calls],
    "after": after.type,
    "person": isinstance(person.age, int),
    "refused": refused,
}))
`;

function hasPackages(): boolean {
  if (testPython === null) return false;
  try {
    execFileSync(testPython, ['-c', PACKAGES], { stdio: 'ignore' });
    return true;
  } catch (error) {
    if (process.env.CI === 'true') throw error;
    console.warn(
      'SKEIN_TEST_PYTHON has not what test/requirements.txt names: Anthropic from pip is skipped.',
    );
    return false;
  }
}

describe.skipIf(!hasPackages())("Anthropic's clients of Python against skein serve", () => {
  let server: SkeinProcess;

  beforeAll(async () => {
    const limits = [
      '--max-active-requests',
      '8',
      '--max-context-tokens',
      '1024',
      '--kv-cache-tokens',
      '8192',
    ];
    server = await startServer(['--served-model-name', 'smol', ...limits]);
  });
  afterAll(async () => {
    await server?.stop();
  });

  async function run(script: string): Promise<unknown> {
    const { stdout } = await promisify(execFile)(testPython!, ['-c', script, server.url]);
    return JSON.parse(stdout);
  }

  it('its package answers, streams, calls, parses and refuses', async () => {
    const said = expect.stringContaining('Gosling');
    expect(await run(ANTHROPIC)).toEqual({
      whole: said,
      streamed: [said, said],
      counted: true,
      call: ['tool_use', 'get_weather', { city: expect.stringMatching(/^(Paris|Rome)$/) }],
      parsed: true,
      refused: [404, 'not_found_error', expect.stringMatching(/^req-/)],
      models: ['smol'],
    });
  });

  it('that of LangChain does too', async () => {
    expect(await run(LANGCHAIN)).toEqual({
      whole: expect.stringContaining('Gosling'),
      same: true,
      calls: ['get_weather'],
      after: 'ai',
      person: true,
      refused: expect.stringContaining('prompt is too long: '),
    });
  });
});
