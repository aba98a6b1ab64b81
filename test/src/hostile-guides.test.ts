import { fileURLToPath } from 'node:url';
import { afterEach, expect, it } from 'vitest';
import { HOSTILE_GUIDES } from '../../tools/request-costs/hostile-guides.js';
import { type SkeinProcess, startServer } from './support/skein-process.js';

const model = fileURLToPath(new URL('../../models/demo/gosling', import.meta.url));
let server: SkeinProcess | null = null;
afterEach(() => {
  server?.child.kill('SIGKILL');
});

function complete(fields: object): Promise<Response> {
  return fetch(`${server!.url}/v1/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ prompt: 'Once', max_tokens: 120, seed: 7, ...fields }),
  });
}

it('hostile guides fail as the fault of who sent them, and a stream beside them completes as alone', async () => {
  server = await startServer(['--model', model]);
  const innocent = async () => {
    const response = await complete({ ignore_eos: true, stream: true });
    const frames = (await response.text()).split('\n\n').filter((frame) => frame.startsWith('data: {'));
    const texts = frames.map((frame) => JSON.parse(frame.slice(6)).choices[0]?.text ?? '');
    return { status: response.status, text: texts.join('') };
  };
  const guided = async () => {
    const response = await complete({ guided_regex: '[a-z]{3,9}( [a-z]{3,9}){4}' });
    return ((await response.json()) as { choices: { text: string }[] }).choices[0]!.text;
  };
  const alone = [await innocent(), await guided()];

  let isOver = false;
  const statuses: number[] = [];
  const words: string[] = [];
  const attack = async (fields: object) => {
    do {
      const response = await complete({ temperature: 1.5, n: 4, max_tokens: 40, ...fields });
      statuses.push(response.status);
      words.push(await response.text());
    } while (!isOver);
  };
  const { explodes, explodesAtOnce, creeps } = HOSTILE_GUIDES;
  const attacks = [
    attack(explodes.fields),
    attack({ ...explodes.fields, stream: true }),
    attack({ ...explodesAtOnce.fields, stream: true }),
    attack(creeps.fields),
  ];
  expect([await innocent(), await guided()]).toEqual(alone);
  isOver = true;
  await Promise.all(attacks);

  expect(statuses.every((status) => status === 200 || status === 400)).toBe(true);
  expect(statuses).toContain(400);
  const errors = words.filter((text) => text.includes('"error"'));
  expect(errors.length).toBeGreaterThan(2);
  for (const text of errors) {
    expect(text).toContain('"type":"invalid_request_error"');
    expect(text).toContain('The guide is too ambiguous');
  }
  // A stream that had begun is told of it by an event.
  expect(words.some((text) => text.startsWith('data: ') && text.includes('"error"'))).toBe(true);
  expect([await innocent(), await guided()]).toEqual(alone);
});
