import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type SkeinProcess, startServer } from '../src/support/skein-process.js';
import { postJson } from '../support/post-json.js';

const folder = fileURLToPath(new URL('../../models/demo/gosling', import.meta.url));

interface Golden {
  answers: { request: string; prompt: number[]; tokens: number[]; gaps: number[]; text: string }[];
}
const { answers } = JSON.parse(
  readFileSync(new URL('../goldens/gosling.json', import.meta.url), 'utf8'),
) as Golden;

/** Gap of two logits below which another order of additions may choose the other token. */
const NEAR_TIE = 1e-3;

interface ChatAnswer {
  choices: { message: { content: string }; finish_reason: string; token_ids: number[] }[];
  prompt_token_ids: number[];
}

describe('the model that comes with the package', () => {
  let server: SkeinProcess;
  beforeAll(async () => {
    // Started without a model, as `npm start` does, and in f32, so that greedy answers can be compared with the reference.
    server = await startServer(['--weights', 'f32', '--threads', '1']);
  });
  afterAll(() => server?.stop());

  const chat = async (content: string, fields: object): Promise<ChatAnswer> => {
    const response = await postJson(`${server.url}/v1/chat/completions`, {
      model: 'gosling',
      messages: [{ role: 'user', content }],
      return_token_ids: true,
      ...fields,
    });
    expect(response.status).toBe(200);
    return (await response.json()) as ChatAnswer;
  };

  it('is served where no other is named, and the start says so with the command for a real one', async () => {
    const { stdout } = server.output();
    expect(stdout).toMatch(/serves gosling at http/);
    expect(stdout).toMatch(/demo model.*offline/);
    expect(stdout).toMatch(/npm start -- --model HuggingFaceTB\/SmolLM2-135M-Instruct/);
    const models = (await (await fetch(`${server.url}/v1/models`)).json()) as { data: { id: string }[] };
    expect(models.data.map(({ id }) => id)).toEqual(['gosling']);
  });

  it.each(answers)(
    'answers "$request" as transformers do in float32',
    async ({ request, prompt, tokens, gaps }) => {
      const answer = await chat(request, { temperature: 0, max_tokens: tokens.length });
      expect(answer.prompt_token_ids).toEqual(prompt);
      const ours = answer.choices[0]!.token_ids;
      // The end token is not part of an answer.
      const expected = answer.choices[0]!.finish_reason === 'stop' ? tokens.slice(0, -1) : tokens;
      const differs = expected.findIndex((token, index) => ours[index] !== token);
      if (differs >= 0) expect(gaps[differs], `token ${differs}`).toBeLessThan(NEAR_TIE);
    },
  );

  it('keeps to the chat format: every answer ends by itself, has words, and no sign of the template', async () => {
    const requests = [
      'Tell me a story about a cat',
      'hello',
      'Tell me a story about a dragon and a princess',
      'what is your name',
      'Thank you',
      'a story about a lost robot',
      'Write a story about the sea',
    ];
    const all = requests.flatMap((request) => [1, 2, 3].map((seed) => ({ request, seed })));
    await Promise.all(
      all.map(async ({ request, seed }) => {
        const { choices } = await chat(request, { temperature: 0.7, seed, max_tokens: 500 });
        const { message, finish_reason } = choices[0]!;
        expect(finish_reason, `${request}, seed ${seed}: ${message.content}`).toBe('stop');
        expect(message.content).toMatch(/^[A-Z"].*[.!?]"?$/s);
        expect(message.content).not.toMatch(/<\||im_start|\bassistant\n/);
      }),
    );
  });

  it('tells of what it was asked for', async () => {
    const subjects = ['cat', 'dragon', 'robot', 'princess', 'turtle', 'train'];
    const told = await Promise.all(
      subjects.map((subject) =>
        chat(`Tell me a story about a ${subject}`, { temperature: 0, max_tokens: 500 }),
      ),
    );
    const missed = subjects.filter(
      (subject, index) => !told[index]!.choices[0]!.message.content.includes(subject),
    );
    expect(missed).toEqual([]);
  });

  it('has a card that tells its size and its held-out loss', () => {
    const card = readFileSync(join(folder, 'README.md'), 'utf8');
    for (const text of [/held-out loss/i, /parameters/, /Apache-2\.0/, /SmolLM2/, /seed 10\b/])
      expect(card).toMatch(text);
  });
});
