import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import Anthropic from '@anthropic-ai/sdk';
import { Ollama } from 'ollama';
import OpenAI, { toFile } from 'openai';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { temporaryFolder } from '../../support/fresh-folders.js';
import { golden } from '../../support/hostile-pictures.js';
import { writeSeeingModel } from '../../support/seeing-model.js';
import { type SkeinProcess, startServer } from '../support/skein-process.js';
import { testPython } from '../support/test-python.js';

const PNG = golden('png rgb');
const BASE64 = PNG.toString('base64');
const QUESTION = 'what is there?';

const script = `
import base64, json, sys
from anthropic import Anthropic
from ollama import Client
from openai import OpenAI

url, path = sys.argv[1:3]
with open(path, "rb") as file:
    data = file.read()
b64 = base64.b64encode(data).decode()
image_url = "data:image/png;base64," + b64
question = "${QUESTION}"

openai = OpenAI(base_url=url + "/v1", api_key="none", max_retries=0)
stored = openai.files.create(file=("a.png", data), purpose="vision")
text = {"type": "text", "text": question}

def chat(*parts):
    made = openai.chat.completions.create(model="seeing", max_tokens=8, temperature=0, extra_body={"ignore_eos": True},
        messages=[{"role": "user", "content": [*parts, text]}])
    return made.choices[0].message.content

def respond(image):
    content = [{"type": "input_image", **image}, {"type": "input_text", "text": question}]
    made = openai.responses.create(model="seeing", max_output_tokens=8, temperature=0, extra_body={"ignore_eos": True},
        input=[{"role": "user", "content": content}])
    return made.output_text

anthropic = Anthropic(base_url=url, api_key="none", max_retries=0)

def message(source):
    asked = {"model": "seeing", "messages": [{"role": "user", "content": [{"type": "image", "source": source}, text]}]}
    made = anthropic.messages.create(max_tokens=8, extra_body={"ignore_eos": True, "temperature": 0}, **asked)
    counted = anthropic.messages.count_tokens(**asked).input_tokens
    return [made.content[0].text, counted == made.usage.input_tokens + made.usage.cache_read_input_tokens]

ollama = Client(host=url)
options = {"temperature": 0, "num_predict": 8}

def ask(image):
    messages = [{"role": "user", "content": question, "images": [image]}]
    return ollama.chat(model="seeing", messages=messages, options=options).message.content

print(json.dumps({
    "chat": [chat({"type": "image_url", "image_url": {"url": image_url, "detail": "low"}}),
             chat({"type": "file", "file": {"file_id": stored.id}})],
    "responses": [respond({"image_url": image_url}), respond({"file_id": stored.id, "detail": "auto"})],
    "messages": [message({"type": "base64", "media_type": "image/png", "data": b64}),
                 message({"type": "url", "url": image_url}),
                 message({"type": "file", "file_id": stored.id})],
    "ollama": [ask(b64), ask(data), ask(path)],
    "generated": ollama.generate(model="seeing", prompt=question, images=[data], options=options).done,
    "abilities": ollama.show("seeing").capabilities,
}))
`;

describe('pictures of clients against skein serve', () => {
  let server: SkeinProcess;
  let folder: string;
  let expected: string;
  let openai: OpenAI;

  const chat = async (part: OpenAI.Chat.ChatCompletionContentPart) => {
    const content = [part, { type: 'text' as const, text: QUESTION }];
    const settings = { model: 'seeing', max_tokens: 8, temperature: 0, ignore_eos: true };
    const made = await openai.chat.completions.create({ ...settings, messages: [{ role: 'user', content }] });
    return made.choices[0]!.message.content!;
  };
  const url = `data:image/png;base64,${BASE64}`;

  beforeAll(async () => {
    folder = temporaryFolder('skein-seeing-clients');
    const model = `seeing=${writeSeeingModel(folder)}`;
    server = await startServer(['--model', model, '--threads', '1', '--kv-cache-tokens', '4096']);
    openai = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'none', maxRetries: 0 });
    expected = await chat({ type: 'image_url', image_url: { url } });
    expect(expected).not.toBe('');
  });
  afterAll(async () => {
    await server?.stop();
  });

  it("are seen in all forms of OpenAI's package from npm", async () => {
    const { id } = await openai.files.create({ file: await toFile(PNG, 'a.png'), purpose: 'vision' });
    expect(await chat({ type: 'file', file: { file_id: id } })).toBe(expected);
    const respond = async (image: { image_url: string } | { file_id: string }) => {
      const input = [
        {
          role: 'user' as const,
          content: [
            { type: 'input_image' as const, detail: 'auto' as const, ...image },
            { type: 'input_text' as const, text: QUESTION },
          ],
        },
      ];
      const settings = { model: 'seeing', max_output_tokens: 8, temperature: 0, ignore_eos: true };
      const made = await openai.responses.create({ ...settings, input });
      expect(made.usage!.input_tokens_details).toMatchObject({ image_tokens: expect.any(Number) });
      return made.output_text;
    };
    expect(await respond({ image_url: url })).toBe(expected);
    expect(await respond({ file_id: id })).toBe(expected);
    const streamed = await openai.chat.completions.create({
      ...{ model: 'seeing', max_tokens: 8, temperature: 0, stream: true as const, ignore_eos: true },
      messages: [
        {
          role: 'user',
          content: [
            { type: 'image_url', image_url: { url } },
            { type: 'text', text: QUESTION },
          ],
        },
      ],
    });
    let text = '';
    for await (const { choices } of streamed) text += choices[0]?.delta.content ?? '';
    expect(text).toBe(expected);
  });

  it("are seen in all forms of Anthropic's and Ollama's packages from npm", async () => {
    const anthropic = new Anthropic({ baseURL: server.url, apiKey: 'none', maxRetries: 0 });
    const data = { type: 'base64', media_type: 'image/png', data: BASE64 } as const;
    for (const source of [data, { type: 'url', url } as const]) {
      const content = [
        { type: 'image' as const, source },
        { type: 'text' as const, text: QUESTION },
      ];
      const asked = { model: 'seeing', messages: [{ role: 'user' as const, content }] };
      const more = { max_tokens: 8, temperature: 0, ignore_eos: true };
      const made = await anthropic.messages.create({ ...asked, ...more });
      expect(made.content).toMatchObject([{ text: expected }]);
      const { input_tokens: counted } = await anthropic.messages.countTokens(asked);
      expect(counted).toBe(made.usage.input_tokens + made.usage.cache_read_input_tokens!);
    }
    const ollama = new Ollama({ host: server.url });
    for (const image of [BASE64, new Uint8Array(PNG)]) {
      const messages = [{ role: 'user', content: QUESTION, images: [image] as string[] }];
      const options = { temperature: 0, num_predict: 8 };
      const { message } = await ollama.chat({ model: 'seeing', messages, options });
      expect(expected.startsWith(message.content)).toBe(true);
    }
  });

  it.skipIf(testPython === null)(
    'are seen in all forms of the packages openai, anthropic and ollama from pip',
    async () => {
      const path = join(folder, 'a.png');
      writeFileSync(path, PNG);
      const { stdout } = await promisify(execFile)(testPython!, ['-c', script, server.url, path]);
      const answer = JSON.parse(stdout) as Record<string, unknown>;
      expect(answer).toMatchObject({
        chat: [expected, expected],
        responses: [expected, expected],
        messages: [
          [expected, true],
          [expected, true],
          [expected, true],
        ],
        generated: true,
        abilities: expect.arrayContaining(['vision']),
      });
      // Its API has no option to continue after the token that ends an answer.
      for (const text of answer.ollama as string[]) expect(expected.startsWith(text)).toBe(true);
    },
  );
});
