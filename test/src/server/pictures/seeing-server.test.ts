import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { temporaryFolder } from '../../../support/fresh-folders.js';
import { golden } from '../../../support/hostile-pictures.js';
import { postJson } from '../../../support/post-json.js';
import { writeSeeingModel } from '../../../support/seeing-model.js';
import { type SkeinProcess, startServer } from '../../support/skein-process.js';

let server: SkeinProcess;
beforeAll(async () => {
  const model = writeSeeingModel(temporaryFolder('skein-seeing'));
  server = await startServer(['--model', model, '--tokens-per-block', '16', '--threads', '1']);
});
afterAll(() => server.stop());

interface Answer {
  choices: { message: { content: string } }[];
  usage: { prompt_tokens: number; prompt_tokens_details: { cached_tokens: number; image_tokens: number } };
}

const ask = (text: string, ...pictures: string[]) => askFor(12, text, ...pictures);

async function askFor(tokens: number, text: string, ...pictures: string[]): Promise<Answer> {
  const images = pictures.map((name) => {
    const url = `data:image/png;base64,${golden(name).toString('base64')}`;
    return { type: 'image_url', image_url: { url } };
  });
  const content = [...images, { type: 'text', text }];
  const body = {
    messages: [{ role: 'user', content }],
    temperature: 0,
    max_tokens: tokens,
    ignore_eos: true,
  };
  const response = await postJson(`${server.url}/v1/chat/completions`, body);
  const answer = (await response.json()) as Answer;
  expect(response.status, JSON.stringify(answer)).toBe(200);
  return answer;
}

const textOf = ({ choices }: Answer) => choices[0]!.message.content;

describe('a server whose model sees', () => {
  it('gives the same answer again, of what the cache has, and among others', async () => {
    const question = 'what is there in this? tell all of it.';
    const first = await ask(question, 'png rgb');
    const { cached_tokens: cachedAtFirst, image_tokens: tokens } = first.usage.prompt_tokens_details;
    expect(cachedAtFirst).toBe(0);
    expect(tokens).toBeGreaterThan(4);
    const again = await ask(question, 'png rgb');
    expect(textOf(again)).toBe(textOf(first));
    expect(again.usage.prompt_tokens_details.cached_tokens).toBeGreaterThan(tokens);
    // The same pixels in a file of another kind are the same picture.
    const webp = await ask(question, 'webp lossless');
    expect(webp.usage.prompt_tokens_details.cached_tokens).toBeGreaterThan(tokens);
    const [among, other] = await Promise.all([
      ask(question, 'png rgb'),
      ask(question, 'png grey'),
      ask('two?', 'png grey', 'png rgb'),
      ask('none?'),
    ]);
    expect(textOf(among!)).toBe(textOf(first));
    expect(textOf(other!)).not.toBe(textOf(first));
  });

  it('computes the rest of a block for a second question where the first answer was short', async () => {
    const first = await askFor(1, 'x', 'jpeg 85 420');
    const { image_tokens: tokens } = first.usage.prompt_tokens_details;
    const second = await ask('yz?', 'jpeg 85 420');
    const cached = second.usage.prompt_tokens_details.cached_tokens;
    // "user:", the picture, "x" and what is after it.
    const whole = Math.floor((first.usage.prompt_tokens - 1) / 16) * 16;
    expect(whole).toBeLessThan(2 + tokens);
    expect(cached).toBe(whole);
    expect(textOf(await ask('yz?', 'jpeg 85 420'))).toBe(textOf(second));
  });

  it('sees a stored file in a response and its next turn, and a tensor, as a picture of a chat', async () => {
    const question = 'which one is it of these?';
    const chat = await ask(question, 'png palette');
    const { prompt_tokens, prompt_tokens_details: details } = chat.usage;
    const form = new FormData();
    form.set('purpose', 'vision');
    form.set('file', new Blob([new Uint8Array(golden('png palette'))]), 'a.png');
    const stored = await fetch(`${server.url}/v1/files`, { method: 'POST', body: form });
    const { id } = (await stored.json()) as { id: string };
    const content = [
      { type: 'input_image', file_id: id },
      { type: 'input_text', text: question },
    ];
    const respond = async (fields: object) => {
      const body = { max_output_tokens: 12, temperature: 0, ignore_eos: true, ...fields };
      const response = await postJson(`${server.url}/v1/responses`, body);
      return (await response.json()) as {
        id: string;
        output: { content: { text: string }[] }[];
        usage: {
          input_tokens: number;
          input_tokens_details: { cached_tokens: number; image_tokens: number };
        };
      };
    };
    const first = await respond({ input: [{ role: 'user', content }] });
    expect(first.output[0]!.content[0]!.text).toBe(textOf(chat));
    expect(first.usage).toMatchObject({
      input_tokens: prompt_tokens,
      input_tokens_details: { image_tokens: details.image_tokens },
    });
    const next = await respond({ previous_response_id: first.id, input: 'and why?' });
    const { cached_tokens: cached, image_tokens: tokens } = next.usage.input_tokens_details;
    expect(tokens).toBe(details.image_tokens);
    expect(cached).toBeGreaterThan(tokens);
    const generated = await postJson(`${server.url}/v2/models/qwen3-vl/generate`, {
      text_input: `u:<|image_pad|>${question};a:`,
      image: golden('png palette').toString('base64'),
      max_tokens: 12,
      end_id: -1,
      return_num_input_tokens: true,
    });
    const tensors = (await generated.json()) as { text_output: string; num_input_tokens: number };
    expect(tensors).toMatchObject({ text_output: textOf(chat), num_input_tokens: prompt_tokens });
  });

  it('refuses a file that is no picture by its place', async () => {
    const image = { type: 'image_url', image_url: { url: 'data:image/png;base64,PHN2Zz4=' } };
    const body = { messages: [{ role: 'user', content: [image] }] };
    const response = await postJson(`${server.url}/v1/chat/completions`, body);
    expect(response.status).toBe(400);
    const { error } = (await response.json()) as { error: { message: string; param: string } };
    expect(error.param).toBe('messages[0].content[0].image_url');
    expect(error.message).toMatch(/^messages\[0\]\.content\[0\]\.image_url: .*SVG/);
  });
});
