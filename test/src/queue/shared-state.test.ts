import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { QueueLab, until } from '../../../tools/support/queue/queue-lab.js';
import { temporaryFolder } from '../../support/fresh-folders.js';
import {
  cleanEnvironment,
  cliPath,
  type SkeinProcess,
  start,
  startServer,
  testCacheDir,
} from '../support/skein-process.js';
import { describeWithNats, testNats } from '../support/test-nats.js';

// biome-ignore lint/suspicious/noExplicitAny: its shape is what is tested.
type Any = any;

const OPTIONS = ['--cache-dir', testCacheDir];
const WORKER = [...OPTIONS, '--threads', '1', '--kv-cache-tokens', '4096', '--max-active-requests', '4'];
const GATEWAY = ['gateway', '--port', '0', '--max-offline-requests', '2', ...OPTIONS];
const NUM_LINES = 40;
const KEY = { authorization: 'Bearer sk-shared' };

/** What a line of the batch, or a response, asks. */
const completion = (index: number) => ({
  ...{ model: 'gosling', prompt: `Goose ${index}`, seed: index, temperature: 1 },
  ...{ max_tokens: 24, ignore_eos: true },
});
const question = (index: number) => ({
  ...{ model: 'gosling', input: `Tell me of goose ${index}.`, seed: index, temperature: 1 },
  ...{ max_output_tokens: 120, ignore_eos: true },
});
const textOf = ({ output }: Any): string => output[0].content[0].text;

describeWithNats('two gateways of one NATS server', () => {
  const folder = temporaryFolder('skein-shared');
  let lab: QueueLab;
  /** A server that has the model itself, and is never disturbed. */
  let direct: SkeinProcess;
  let gateways: SkeinProcess[] = [];

  const startGateway = async () => {
    const files = [
      '--api-key-file',
      join(folder, 'keys.yaml'),
      '--cache-secret-file',
      join(folder, 'secret'),
    ];
    const gateway = await start([cliPath, ...GATEWAY, ...files, '--nats', lab.nats.url], {});
    await until('the model', async () => (await askOne(gateway, '/v1/models'))?.data.length > 0);
    return gateway;
  };
  const kill = async (gateway: SkeinProcess) => {
    gateway.child.kill('SIGKILL');
    await gateway.ended;
  };

  /** null: the gateway is gone, or cannot answer now. */
  const askOne = async ({ url }: SkeinProcess, path: string, init: RequestInit = {}): Promise<Any> => {
    const answer = await fetch(url + path, { ...init, headers: { ...KEY, ...init.headers } }).catch(
      () => null,
    );
    const text = await answer?.text().catch(() => null);
    if (answer == null || text == null || answer.status === 503) return null;
    if (answer.status !== 200) throw new Error(`${path}: ${answer.status} ${text}`);
    return answer.headers.get('content-type')?.includes('application/json') ? JSON.parse(text) : text;
  };
  let turn = 0;
  /** The answer of one of the gateways, in turn, until one has it. */
  const ask = async (path: string, init: RequestInit = {}): Promise<Any> => {
    for (;;) {
      const gateway = gateways[turn++ % gateways.length]!;
      const answer = await askOne(gateway, path, init);
      if (answer !== null) return answer;
      await sleep(50);
    }
  };
  const post = (path: string, body: object) =>
    ask(path, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
  /** Begins a stream and reads its first events. @returns the id of its response */
  const begunStream = async (body: object): Promise<string> => {
    const headers = { ...KEY, 'content-type': 'application/json' };
    for (;;) {
      const url = `${gateways[0]!.url}/v1/responses`;
      const answer = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) });
      const reader = answer.body!.getReader();
      const first = new TextDecoder().decode((await reader.read()).value);
      reader.cancel().catch(() => {});
      if (answer.status === 200) return /"id":"(resp_\w+)"/.exec(first)![1]!;
      expect([answer.status, first]).toEqual([503, expect.any(String)]);
    }
  };
  const postDirect = async (path: string, body: object): Promise<Any> => {
    const headers = { 'content-type': 'application/json' };
    return (await fetch(direct.url + path, { method: 'POST', headers, body: JSON.stringify(body) })).json();
  };
  const upload = async (content: string): Promise<Any> => {
    const form = new FormData();
    form.append('purpose', 'batch');
    form.append('file', new File([content], 'in.jsonl'));
    return ask('/v1/files', { method: 'POST', body: form });
  };

  beforeAll(async () => {
    writeFileSync(join(folder, 'keys.yaml'), '[{ name: shared, key: sk-shared }]');
    lab = await QueueLab.start({ nats: testNats!, environment: cleanEnvironment({}) });
    await lab.startWorker(WORKER);
    direct = await startServer(['--threads', '1', '--kv-cache-tokens', '4096']);
    gateways = [await startGateway(), await startGateway()];
  });
  afterAll(async () => {
    await direct?.stop();
    for (const gateway of gateways) await kill(gateway);
    await lab?.close();
  });

  it('find what the other one has cached of a key, by the secret that they share', async () => {
    const body = { ...completion(0), prompt: 'A goose walks by the river. '.repeat(20) };
    const headers = { 'content-type': 'application/json' };
    for (const [index, gateway] of gateways.entries()) {
      const answer = await askOne(gateway, '/v1/completions', {
        method: 'POST',
        headers,
        body: JSON.stringify(body),
      });
      const cached = answer.usage.prompt_tokens_details?.cached_tokens ?? 0;
      expect(cached > 100).toBe(index > 0);
    }
  });

  it('lose nothing that was accepted and answer nothing twice, while they and the NATS server are killed in turn', async () => {
    const lines = Array.from({ length: NUM_LINES }, (_, index) =>
      JSON.stringify({
        custom_id: `${index}`,
        method: 'POST',
        url: '/v1/completions',
        body: completion(index),
      }),
    );
    const input = await upload(lines.join('\n'));
    const asked = { input_file_id: input.id, endpoint: '/v1/completions', completion_window: '24h' };
    const headers = { 'content-type': 'application/json' };
    const atFirst = { method: 'POST', headers, body: JSON.stringify(asked) };
    const batch = await askOne(gateways[0]!, '/v1/batches', atFirst);
    const completed = async (): Promise<number> =>
      (await ask(`/v1/batches/${batch.id}`)).request_counts.completed;
    const conversation = await post('/v1/conversations', { metadata: { of: 'geese' } });
    /** What was accepted, and what it has to be at the end. */
    const files: { id: string; content: string }[] = [];
    const kept: Any[] = [];
    const background: { id: string; index: number }[] = [];
    const texts: string[] = [];
    const store = async (index: number) => {
      const content = `file ${index}\n`.repeat(1 + 1000 * index);
      files.push({ id: (await upload(content)).id, content });
      kept.push(await post('/v1/responses', { ...question(index), max_output_tokens: 8 }));
      const text = `Item ${index}`;
      await post(`/v1/conversations/${conversation.id}/items`, { items: [{ role: 'user', content: text }] });
      texts.push(text);
      background.push({
        id: (await post('/v1/responses', { ...question(index), background: true })).id,
        index,
      });
      const streamed = { ...question(100 + index), background: true, stream: true };
      background.push({ id: await begunStream(streamed), index: 100 + index });
    };

    await store(0);
    await until('answers of the batch', async () => (await completed()) > 0);
    await kill(gateways[0]!);
    gateways = [gateways[1]!, await startGateway()];
    await store(1);
    await lab.nats.kill();
    await lab.nats.startAgain();
    await store(2);
    const before = await completed();
    expect(before).toBeLessThan(NUM_LINES);
    await until('the batch to go on', async () => (await completed()) > before);
    await kill(gateways[0]!);
    gateways = [gateways[1]!, await startGateway()];

    const ended = async (): Promise<Any> => {
      const now = await ask(`/v1/batches/${batch.id}`);
      return now.status === 'completed' ? now : null;
    };
    await until('the batch', async () => (await ended()) !== null);
    const done = await ended();
    expect(done.request_counts).toEqual({ total: NUM_LINES, completed: NUM_LINES, failed: 0 });
    const output: string = await ask(`/v1/files/${done.output_file_id}/content`);
    const answers = output
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(answers.map(({ custom_id }) => Number(custom_id)).sort((a, b) => a - b)).toEqual(
      Array.from({ length: NUM_LINES }, (_, index) => index),
    );
    for (const { custom_id, response } of answers) {
      const { choices } = await postDirect('/v1/completions', completion(Number(custom_id)));
      expect(response.body.choices).toEqual(choices);
    }
    for (const { id, content } of [...files, { id: input.id, content: lines.join('\n') }])
      for (const gateway of gateways) expect(await askOne(gateway, `/v1/files/${id}/content`)).toBe(content);
    for (const response of kept)
      for (const gateway of gateways)
        expect(await askOne(gateway, `/v1/responses/${response.id}`)).toEqual(response);
    const items = await ask(`/v1/conversations/${conversation.id}/items?order=asc&limit=100`);
    const found = items.data.map(({ content }: Any) => content[0].text);
    // What was refused since NATS did not answer, and was sent again, may have come twice.
    expect(found.filter((text: string, index: number) => text !== found[index - 1])).toEqual(texts);
    for (const { id, index } of background) {
      await until(
        'a response in the background',
        async () => (await ask(`/v1/responses/${id}`)).status !== 'in_progress',
      );
      const response = await ask(`/v1/responses/${id}`);
      expect(response.status).toBe('incomplete');
      const text = textOf(await postDirect('/v1/responses', { ...question(index), store: false }));
      expect(textOf(response)).toBe(text);
      if (index < 100) continue;
      const frames: string = await ask(`/v1/responses/${id}?stream=true`);
      const events = frames
        .trimEnd()
        .split('\n\n')
        .map((frame) => JSON.parse(frame.slice(frame.indexOf('data: ') + 6)));
      expect(events.map(({ sequence_number }) => sequence_number)).toEqual(events.map((_, number) => number));
      const deltas = events.filter(({ type }) => type === 'response.output_text.delta');
      expect(deltas.map(({ delta }) => delta).join('')).toBe(text);
      expect(events.at(-1).response).toMatchObject({ id, output: response.output });
    }
  });
});
