import * as jetstream from '@nats-io/jetstream';
import * as kv from '@nats-io/kv';
import * as nats from '@nats-io/transport-node';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { PictureMessage, WorkItem } from '../../../cluster/nats/messages.js';
import { NatsWorkerPort } from '../../../cluster/nats/nats-worker-port.js';
import { WorkPictures } from '../../../cluster/nats/work-pictures.js';
import { WorkStream } from '../../../cluster/nats/work-stream.js';
import { QueueLab, until } from '../../../tools/support/queue/queue-lab.js';
import { temporaryFolder } from '../../support/fresh-folders.js';
import { golden, noisePng } from '../../support/hostile-pictures.js';
import { postJson } from '../../support/post-json.js';
import { writeSeeingModel } from '../../support/seeing-model.js';
import {
  cleanEnvironment,
  cliPath,
  type SkeinProcess,
  start,
  startServer,
  testCacheDir,
} from '../support/skein-process.js';
import { describeWithNats, testNats } from '../support/test-nats.js';

const TOKENS_PER_BLOCK = 16;
const BLOCK = [
  ...['--tokens-per-block', `${TOKENS_PER_BLOCK}`],
  ...['--threads', '1', '--cache-dir', testCacheDir],
];

/** Prompts that a prefill worker computes, where there is one. */
const HANDED_OVER = ['--max-local-prefill-length', '32'];

interface Answer {
  model: string;
  choices: { message: { content: string } }[];
  usage: { prompt_tokens: number; prompt_tokens_details: { cached_tokens: number; image_tokens: number } };
}

const textOf = ({ choices }: Answer) => choices[0]!.message.content;
const detailsOf = ({ usage }: Answer) => usage.prompt_tokens_details;

function chatOf(text: string, pictures: readonly Buffer[], more: object = {}) {
  const images = pictures.map((file) => {
    const url = `data:image/png;base64,${file.toString('base64')}`;
    return { type: 'image_url', image_url: { url } };
  });
  const content = [...images, { type: 'text', text }];
  return {
    ...{ model: 'seeing', messages: [{ role: 'user', content }], max_tokens: 12 },
    ...{ temperature: 1, seed: 7, ignore_eos: true, ...more },
  };
}

describeWithNats('pictures through the work queue', () => {
  let lab: QueueLab;
  let gateway: SkeinProcess;
  /** A server that has the model itself. */
  let direct: SkeinProcess;
  let worker: string[];
  /** Parts of pictures that workers have asked gateways for. */
  const asked: PictureMessage[] = [];

  const post = async (body: object, { url } = gateway): Promise<Answer> => {
    const response = await postJson(`${url}/v1/chat/completions`, body);
    const answer = (await response.json()) as Answer;
    expect(response.status, JSON.stringify(answer)).toBe(200);
    return answer;
  };
  const countOf = (text: string, rows: string) =>
    Number(new RegExp(`^skein:pictures_total\\{.*rows="${rows}"\\} (\\d+)$`, 'm').exec(text)?.[1] ?? 0);
  /** Pictures whose rows were made, and kept, by all workers together. */
  const rowsOf = async (): Promise<{ made: number; kept: number }> => {
    const sums = { made: 0, kept: 0 };
    for (const { output } of lab.workers) {
      const [, url] = /its metrics: (\S+)/.exec(output())!;
      const text = await (await fetch(url!)).text();
      sums.made += countOf(text, 'made');
      sums.kept += countOf(text, 'kept');
    }
    return sums;
  };
  /** What the rows of pictures have come to while something runs. */
  const rowsWhile = async (run: () => Promise<unknown>): Promise<{ made: number; kept: number }> => {
    const before = await rowsOf();
    await run();
    const after = await rowsOf();
    return { made: after.made - before.made, kept: after.kept - before.kept };
  };
  const startWorkers = async (count: number) => {
    while (lab.workers.size < count) await lab.startWorker(worker);
    await until('the workers', async () => {
      const { data } = (await (await fetch(`${gateway.url}/v1/models`)).json()) as {
        data: { id: string; workers: number }[];
      };
      return data.find(({ id }) => id === 'seeing')?.workers === count;
    });
  };

  beforeAll(async () => {
    const model = ['--model', `seeing=${writeSeeingModel(temporaryFolder('skein-seeing'))}`, ...BLOCK];
    worker = [...model, '--health-port', '0', '--kv-cache-tokens', '4096'];
    lab = await QueueLab.start({ nats: testNats!, environment: cleanEnvironment({}) });
    lab.onPicture((message) => asked.push(message));
    [direct, gateway] = await Promise.all([
      startServer([...model, '--kv-cache-tokens', '4096']),
      start(
        [
          ...[cliPath, 'gateway', '--port', '0', '--nats', lab.nats.url],
          ...['--cache-dir', testCacheDir, ...HANDED_OVER],
        ],
        {},
      ),
    ]);
    await startWorkers(2);
  });
  afterAll(async () => {
    await direct?.stop();
    await gateway?.stop();
    await lab?.close();
  });

  it('are answered as by a server that has the model itself, to the bit', async () => {
    const chats = [
      chatOf('what is there?', [golden('png rgb')], { logprobs: true, top_logprobs: 2 }),
      chatOf('and these?', [golden('png grey'), golden('png rgb'), golden('png grey')], { n: 2 }),
      // A file that is larger than a message of NATS.
      chatOf('so large?', [noisePng(700, 700)]),
    ];
    for (const chat of chats) {
      const [own, over] = await Promise.all([post(chat, direct), post(chat)]);
      expect(over.choices).toEqual(own.choices);
      // What they have cached may differ.
      const [{ image_tokens: tokens }, { image_tokens: expected }] = [detailsOf(over), detailsOf(own)];
      expect([over.usage.prompt_tokens, tokens]).toEqual([own.usage.prompt_tokens, expected]);
      expect(tokens).toBeGreaterThan(4);
    }
    const tokenized = await Promise.all(
      [direct, gateway].map(async ({ url }) =>
        (await postJson(`${url}/tokenize`, chatOf('what?', [golden('png rgb')]))).json(),
      ),
    );
    expect(tokenized[1]).toEqual(tokenized[0]);
  });

  it('are neither sent nor seen nor computed again for the second question on them', async () => {
    const picture = golden('png palette');
    const first = chatOf('one: what is there in this picture?', [picture]);
    expect(await rowsWhile(() => post(first))).toEqual({ made: 1, kept: 0 });
    // Its worker has reported what it has in its cache when it is chosen for it.
    await until('the second question to go where the picture is', async () => {
      const sent = asked.length;
      let answer: Answer | null = null;
      const rows = await rowsWhile(async () => {
        answer = await post(chatOf('two: what is there in this picture?', [picture]));
      });
      const { cached_tokens: cached, image_tokens: tokens } = detailsOf(answer!);
      if (cached < tokens) return false;
      expect([rows, asked.length - sent]).toEqual([{ made: 0, kept: 1 }, 0]);
      return true;
    });
  });

  it('are read once, and again where a worker that has not seen them asks for them', async () => {
    const filesOf = async () => {
      const text = await (await fetch(`${gateway.url}/metrics`)).text();
      const count = (files: string) =>
        Number(new RegExp(`^skein:picture_files_total\\{.*files="${files}"\\} (\\d+)$`, 'm').exec(text)![1]);
      return [count('read'), count('known')];
    };
    const picture = golden('png 16 grey');
    const [read = 0, known = 0] = await filesOf();
    const expected = textOf(await post(chatOf('seen?', [picture]), direct));
    expect(textOf(await post(chatOf('seen?', [picture])))).toBe(expected);
    expect(await filesOf()).toEqual([read + 1, known]);
    expect(textOf(await post(chatOf('seen?', [picture])))).toBe(expected);
    expect(await filesOf()).toEqual([read + 1, known + 1]);
    for (const old of [...lab.workers]) await lab.kill(old);
    await startWorkers(2);
    const sent = asked.length;
    expect(textOf(await post(chatOf('seen?', [picture])))).toBe(expected);
    expect(await filesOf()).toEqual([read + 1, known + 2]);
    expect(asked.length).toBeGreaterThan(sent);
  });

  it('of another salt share nothing', async () => {
    const chat = chatOf('what is there in this picture?', [golden('png palette')], { cache_salt: 'other' });
    let answer: Answer | null = null;
    expect(await rowsWhile(async () => (answer = await post(chat)))).toEqual({ made: 1, kept: 0 });
    expect(detailsOf(answer!).cached_tokens).toBe(0);
  });

  it('go to another worker when theirs dies, and the answer stays the same', async () => {
    const chat = chatOf('and what is this?', [golden('png exif 6')], { max_tokens: 60 });
    const expected = textOf(await post(chat, direct));
    let killed: Promise<void> | null = null;
    const stop = lab.onFrame(({ id, index }) => {
      const holder = index >= 4 && killed === null ? lab.holderOf(id) : undefined;
      if (holder !== undefined) killed = lab.kill(holder);
    });
    const begun = asked.length;
    expect(textOf(await post(chat))).toBe(expected);
    stop();
    await killed;
    expect(lab.workers.size).toBe(1);
    expect(new Set(asked.slice(begun).map(({ attempt }) => attempt)).size).toBeGreaterThan(1);
    await startWorkers(2);
  });

  it('come when NATS is there again', async () => {
    const chat = chatOf('is it there?', [golden('png 16 rgb')]);
    const expected = textOf(await post(chat, direct));
    let away: Promise<void> | null = null;
    const stop = lab.onPicture(() => {
      away ??= lab.nats.kill();
    });
    const answer = post(chat);
    await until('a worker to ask for the picture', () => away !== null);
    stop();
    await away;
    await lab.nats.startAgain();
    expect(textOf(await answer)).toBe(expected);
  });

  it('of batches are answered too', async () => {
    const chat = chatOf('what is there?', [golden('png rgb')]);
    const line = { custom_id: 'a', method: 'POST', url: '/v1/chat/completions', body: chat };
    const form = new FormData();
    form.set('purpose', 'batch');
    form.set('file', new Blob([`${JSON.stringify(line)}\n`]), 'lines.jsonl');
    const { id } = (await (
      await fetch(`${gateway.url}/v1/files`, { method: 'POST', body: form })
    ).json()) as {
      id: string;
    };
    const asking = { input_file_id: id, endpoint: '/v1/chat/completions', completion_window: '24h' };
    const begun = await postJson(`${gateway.url}/v1/batches`, asking);
    let batch = (await begun.json()) as { id: string; status: string; output_file_id?: string };
    await until('the batch', async () => {
      batch = (await (await fetch(`${gateway.url}/v1/batches/${batch.id}`)).json()) as typeof batch;
      return batch.status === 'completed';
    });
    const output = await (await fetch(`${gateway.url}/v1/files/${batch.output_file_id}/content`)).text();
    const { response } = JSON.parse(output) as { response: { body: Answer } };
    expect(textOf(response.body)).toBe(textOf(await post(chat, direct)));
  });

  it('of responses in the background are answered, and kept for the next turn', async () => {
    const image_url = `data:image/png;base64,${golden('png rgb').toString('base64')}`;
    const content = [
      { type: 'input_image', image_url },
      { type: 'input_text', text: 'what is there?' },
    ];
    interface Kept {
      id: string;
      status: string;
      output: { content: { text: string }[] }[];
      usage: { input_tokens_details: { image_tokens: number } };
    }
    const respond = async ({ url }: SkeinProcess, more: object) => {
      const body = { model: 'seeing', temperature: 0, max_output_tokens: 12, ignore_eos: true, ...more };
      const response = await postJson(`${url}/v1/responses`, body);
      let kept = (await response.json()) as Kept;
      expect(response.status, JSON.stringify(kept)).toBe(200);
      await until('the response', async () => {
        if (kept.status !== 'queued' && kept.status !== 'in_progress') return true;
        kept = (await (await fetch(`${url}/v1/responses/${kept.id}`)).json()) as Kept;
        return false;
      });
      return kept;
    };
    const [first, expected] = await Promise.all([
      respond(gateway, { input: [{ role: 'user', content }], background: true }),
      respond(direct, { input: [{ role: 'user', content }] }),
    ]);
    // Its tokens are used up, because it is asked not to end.
    expect([first.status, expected.status]).toEqual(['incomplete', 'incomplete']);
    expect(first.output[0]!.content[0]!.text).toBe(expected.output[0]!.content[0]!.text);
    const { image_tokens: tokens } = expected.usage.input_tokens_details;
    expect(first.usage.input_tokens_details.image_tokens).toBe(tokens);
    const next = { input: 'and why?' };
    const [second, own] = await Promise.all([
      respond(gateway, { ...next, previous_response_id: first.id, background: true }),
      respond(direct, { ...next, previous_response_id: expected.id }),
    ]);
    expect(second.output[0]!.content[0]!.text).toBe(own.output[0]!.content[0]!.text);
    expect(second.usage.input_tokens_details.image_tokens).toBe(tokens);
  });

  it('of tensors are answered as by a server that has the model itself', async () => {
    const ask = async ({ url }: SkeinProcess) => {
      const body = { text_input: 'u:<|image_pad|>what is it?;a:', max_tokens: 12, end_id: -1 };
      const image = golden('png palette').toString('base64');
      const response = await postJson(`${url}/v2/models/seeing/generate`, { ...body, image });
      const answer = (await response.json()) as { text_output: string };
      expect(response.status, JSON.stringify(answer)).toBe(200);
      return answer.text_output;
    };
    const expected = await ask(direct);
    expect(expected).not.toBe('');
    expect(await ask(gateway)).toBe(expected);
  });

  it('of prompts that a prefill worker computes are answered as before, from its blocks', async () => {
    const prefiller = await lab.startWorker([...worker, '--disaggregation-mode', 'prefill']);
    const [, url] = /its metrics: (\S+)/.exec(prefiller.output())!;
    const madeThere = async () => countOf(await (await fetch(url!)).text(), 'made');
    /**
     * Tokens of the prompt that the worker which answers has found in its cache: clients receive only the
     * number that was computed earlier.
     */
    let found = 0;
    const stopFrames = lab.onFrame(({ piece }) => {
      found = piece.cachedTokens ?? found;
    });
    let fetched = 0;
    const stopFetches = await lab.onFetch(({ length }) => {
      fetched += length;
    });
    const text = 'what is there in this picture, and what not?';
    let salt = 0;
    // A prompt that the prefill worker does not take within a second is not waited for.
    await until('a prompt to be handed over', async () => {
      [lab.prefilled.length, found, fetched] = [0, 0, 0];
      const chat = chatOf(text, [golden('png rgb')], { cache_salt: `handed over ${salt++}`, logprobs: true });
      const before = await madeThere();
      const [own, over] = await Promise.all([post(chat, direct), post(chat)]);
      expect(over.choices).toEqual(own.choices);
      expect(detailsOf(over)).toEqual(detailsOf(own));
      if (lab.prefilled.length === 0) return false;
      expect((await madeThere()) - before).toBe(1);
      const { prompt_tokens: length } = over.usage;
      expect(length).toBeGreaterThan(detailsOf(over).image_tokens + TOKENS_PER_BLOCK);
      expect(found).toBe(length - 1 - ((length - 1) % TOKENS_PER_BLOCK));
      expect(fetched).toBeGreaterThan(0);
      return true;
    });
    stopFrames();
    stopFetches();
    await lab.kill(prefiller);
  });

  it('are forgotten with a request that is cancelled', async () => {
    const controller = new AbortController();
    const chat = chatOf('all of it?', [golden('png rgb')], { max_tokens: 180, stream: true });
    const { signal } = controller;
    const response = await postJson(`${gateway.url}/v1/chat/completions`, chat, { signal });
    await response.body!.getReader().read();
    controller.abort();
    await lab.untilIdle();
    await until('the gateway to hold nothing', async () => {
      const text = await (await fetch(`${gateway.url}/metrics`)).text();
      return /^skein:held_memory_bytes\{holding="request"\} 0$/m.test(text);
    });
  });

  it('cross in parts where they are larger than a message, and are no more there once nobody asks', async () => {
    const bytes = noisePng(1024, 1024);
    expect(bytes.length).toBeGreaterThan(3 * 1024 * 1024);
    const told = { digest: new Uint8Array(32), width: 1024, height: 1024, numBytes: bytes.length };
    const picture = { ...told, bytes: async () => bytes };
    const nc = await nats.connect({ servers: lab.nats.url });
    const options = { storage: 'file', replicas: 1, maxMessages: 100 } as const;
    const stream = new WorkStream(nc, { nats, jetstream, kv }, lab.names, options);
    const port = new NatsWorkerPort({
      ...{ nc, stream, names: lab.names, id: 'w', pool: { model: 'none', fingerprint: 'none' } },
      ...{ beat: () => ({}) as never, readFile: async () => null, onWarning: () => {} },
    });
    let arrived: Uint8Array | null = null;
    const sight = {
      check: () => {},
      rows: async (_: unknown, __: unknown, bring: () => Promise<Uint8Array>) => {
        arrived = await bring();
        return [];
      },
    };
    // No worker has this model: the request waits, and any that asks may have its pictures.
    lab.gateway.open('none', { maxQueueSize: 1, fairQueueing: false });
    const promptTokens = [1];
    const [tokens] = lab.gateway.submit('none', { promptTokens, maxNewTokens: 1, sentPictures: [picture] });
    const item = {
      ...{ kind: 'work', gateway: 'lab0', id: 'lab0-1', attempt: 1, known: [], ended: [], request: {} },
      pictures: [told],
    } satisfies WorkItem;
    const before = asked.length;
    await new WorkPictures(sight, port).bring(item, { promptTokens, maxNewTokens: 1 }, () => true);
    expect(Buffer.compare(arrived!, bytes)).toBe(0);
    expect(asked.length - before).toBeGreaterThan(4);
    tokens!.leave();
    let numAsked = 0;
    const gone = new WorkPictures(sight, port).bring(
      item,
      { promptTokens, maxNewTokens: 1 },
      () => numAsked++ < 9,
    );
    await expect(gone).rejects.toThrow('not wanted any more');
    await nc.close();
  });

  it('are refused where the model does not see', async () => {
    await lab.startWorker([...BLOCK, '--kv-cache-tokens', '512']);
    const blind = chatOf('what?', [golden('png rgb')], { model: 'gosling' });
    let response: Response | null = null;
    await until('its model', async () => {
      response = await postJson(`${gateway.url}/v1/chat/completions`, blind);
      return response.status !== 404;
    });
    const { error } = (await response!.json()) as { error: { message: string; code: string } };
    expect([response!.status, error.code]).toEqual([400, 'no_vision']);
    expect(error.message).toContain('the model reads text alone');
  });
});
