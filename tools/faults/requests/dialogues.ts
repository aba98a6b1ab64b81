import { setTimeout as sleep } from 'node:timers/promises';
import type { Random } from '../../support/random.js';
import { type Ask, WrongAnswer } from '../client/client.js';
import type { Json } from '../client/fold.js';
import { type Body, common, dialogue, type Script } from './script.js';
import { words } from './texts.js';

/** Milliseconds between two questions whether something is done, and until it must be. */
const POLL_MS = 100;
const MAX_WAIT_MS = 180_000;
/** Requests of a batch. */
const LINES = 6;

type Thing = { [name: string]: Json };
const text = (random: Random) => words(random, 3 + random.below(10));

/** Two responses of which the second continues the first, and what is kept of them: each call may come to another gateway. */
export const conversation = (random: Random): Script => {
  const [first, second] = [0, 1].map(() => response(random)) as [Body, Body];
  return dialogue({ first, second }, async (ask) => {
    const one = await post(ask, '/v1/responses', first);
    const other = await post(ask, '/v1/responses', { ...second, previous_response_id: one.id });
    const kept = await ask({ method: 'GET', path: `/v1/responses/${one.id}` });
    return [outputOf(one), outputOf(other), outputOf(kept as Thing)];
  });
};

/** A response that is made while no client waits for it. */
export const background = (random: Random): Script => {
  const body = { ...response(random), background: true };
  return dialogue(body, async (ask) => {
    const { id } = await post(ask, '/v1/responses', body);
    return outputOf(await untilDone(ask, `/v1/responses/${id}`, ['queued', 'in_progress']));
  });
};

/** A file of requests, and the file of its answers. */
export const batch = (random: Random): Script => {
  const bodies = Array.from({ length: LINES }, () => ({
    ...common(random),
    ...{ max_tokens: 10 + random.below(20), prompt: text(random), ignore_eos: true },
  }));
  const lines = bodies.map((body, index) =>
    JSON.stringify({ custom_id: String(index), method: 'POST', url: '/v1/completions', body }),
  );
  return dialogue({ lines }, async (ask) => {
    const form = new FormData();
    form.set('purpose', 'batch');
    form.set('file', new Blob([`${lines.join('\n')}\n`]), 'in.jsonl');
    const file = (await ask({ method: 'POST', path: '/v1/files', body: form })) as Thing;
    const made = await post(ask, '/v1/batches', {
      ...{ input_file_id: file.id, endpoint: '/v1/completions', completion_window: '24h' },
    });
    const waiting = ['validating', 'in_progress', 'finalizing'];
    const done = await untilDone(ask, `/v1/batches/${made.id}`, waiting);
    if (done.status !== 'completed' || done.output_file_id === null)
      throw new WrongAnswer(`the batch ended so: ${JSON.stringify(done)}`);
    const content = await ask({ method: 'GET', path: `/v1/files/${done.output_file_id}/content` });
    const answers = String(content)
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { custom_id: string; response: { body: Json } })
      .toSorted((a, b) => Number(a.custom_id) - Number(b.custom_id));
    return {
      counts: done.request_counts!,
      answers: answers.map(({ custom_id, response }) => [custom_id, response.body]),
    };
  });
};

const response = (random: Random): Body => ({
  ...common(random),
  ...{ input: text(random), max_output_tokens: 16 + random.below(30) },
});

const post = async (ask: Ask, path: string, body: Body) =>
  (await ask({ method: 'POST', path, body })) as Thing;

/** The part of a response that its names and times do not change. */
const outputOf = ({ status, output, usage }: Thing): Json => ({
  status: status!,
  output: output!,
  usage: usage ?? null,
});

async function untilDone(ask: Ask, path: string, waiting: readonly string[]): Promise<Thing> {
  const end = performance.now() + MAX_WAIT_MS;
  for (;;) {
    const now = (await ask({ method: 'GET', path })) as Thing;
    if (!waiting.includes(String(now.status))) return now;
    if (performance.now() > end)
      throw new WrongAnswer(`${path} is ${now.status} for ${MAX_WAIT_MS / 1000} s: ${JSON.stringify(now)}`);
    await sleep(POLL_MS);
  }
}
