import { join } from 'node:path';
import { HostClosedError, RequestError } from 'skein';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import type { EncoderSequence } from '../../../callbacks/encoder-messages.js';
import type { WeightPrecision } from '../../../engine/directory/engine-directory.js';
import { type GroupShape, sizeOf } from '../../../engine/sharding/rank-shape.js';
import type { EncoderHost, EncoderHostOptions } from '../../../host/encoder-host.js';
import { temporaryFolder } from '../../support/fresh-folders.js';
import { madeEmbedder, writeMadeEmbedder } from '../../support/made-embedders.js';
import { poll, RankManagers, rankProcesses, stopProcess } from '../../support/rank-managers.js';

type Host = new (options: EncoderHostOptions) => EncoderHost;
let Compiled: Host;
beforeAll(async () => {
  // The compiled one: its workers run JavaScript.
  const url = new URL('../../../dist/host/encoder-host.js', import.meta.url).href;
  Compiled = ((await import(url)) as { EncoderHost: Host }).EncoderHost;
});

const folder = temporaryFolder('skein-encoder-ranks');
const managers = new RankManagers();
const hosts: EncoderHost[] = [];
afterEach(async () => {
  for (const host of hosts.splice(0)) await host.close({ abort: true });
  await managers.end();
});
afterAll(() => managers.remove());

async function open(
  model: string,
  params: EncoderHostOptions['params'],
  { precision = 'bf16', ...more }: Partial<EncoderHostOptions> & { precision?: WeightPrecision } = {},
): Promise<EncoderHost> {
  const host = new Compiled({
    enginePath: await managers.engine(precision, model),
    params: { threads: 1, ...params },
    workerRestart: { delayMs: 1 },
    onError: () => {},
    ...more,
  });
  hosts.push(host);
  return host;
}

const TEXTS = [3, 11, 30, 1].map((length, row) => ({
  tokenIds: Int32Array.from({ length }, (_, i) => (i * 7 + row) % 60),
  tokenTypes: null,
}));

const TWO = { tensorParallelSize: 2, pipelineParallelSize: 1 };
const FOUR = { tensorParallelSize: 4, pipelineParallelSize: 1 };
const STAGES = { tensorParallelSize: 1, pipelineParallelSize: 2 };
const TWO_BY_TWO = { tensorParallelSize: 2, pipelineParallelSize: 2 };

it.each<[string, WeightPrecision, GroupShape]>([
  ['bert-mean', 'bf16', TWO],
  // It has one head, so that it can be cut into stages alone.
  ['bert-last', 'bf16', STAGES],
  ['roberta-score', 'bf16', TWO_BY_TWO],
  ['bert-cls', 'f32', FOUR],
  ['bert-cls', 'int8', TWO_BY_TWO],
])('rows of %s in %s on ranks of %o are those of one process', async (model, precision, sizes) => {
  const alone = await open(model, {}, { precision });
  const expected = await alone.encode(TEXTS);
  const host = await open(model, sizes, { precision });
  expect(await host.encode(TEXTS)).toEqual(expected);
  await poll(() => rankProcesses().length === sizeOf(sizes) - 1);
  expect(host.info).toMatchObject({ executor: 'native', outputWidth: alone.info!.outputWidth });
});

it.each<[string, GroupShape]>([
  // A later stage adds the bias that experts share, a table of the types of tokens.
  ['nomic-embed-moe', STAGES],
  ['bge-m3', TWO_BY_TWO],
])('what %s gives on ranks of %o, of texts and of tokens, is that of one process', async (name, sizes) => {
  const made = madeEmbedder(name);
  const enginePath = await managers.engine('f32', writeMadeEmbedder(join(folder, name), made));
  const asked = TEXTS.flatMap((text): EncoderSequence[] =>
    name === 'bge-m3' ? [text, { ...text, output: 'vectors' }, { ...text, output: 'weights' }] : [text],
  );
  const expected = await (await open('bert-mean', {}, { enginePath })).encode(asked);
  const host = await open('bert-mean', sizes, { enginePath });
  expect(await host.encode(asked)).toEqual(expected);
});

it('ranks that would share a mixture of experts are refused with the option', async () => {
  const made = madeEmbedder('nomic-embed-moe');
  const enginePath = await managers.engine('f32', writeMadeEmbedder(join(folder, made.name), made));
  const host = await open('bert-mean', TWO, { enginePath });
  await expect(host.ready).rejects.toThrow(
    /^This model has mixtures of experts, whose layers ranks cannot share: tensorParallelSize must be 1, but it is 2;/,
  );
});

it('a rank that is killed fails what is computed, and all come back', async () => {
  const host = await open('bert-mean', { tensorParallelSize: 2 });
  const expected = await host.encode(TEXTS);
  // Those of a host that was closed before may still be ending.
  await poll(() => rankProcesses().length === 1);
  const [rank] = rankProcesses();
  await stopProcess(rank!);
  const failed = host.encode(TEXTS);
  await poll(() => host.running === 1);
  process.kill(rank!, 'SIGKILL');
  await expect(failed).rejects.toThrow(RequestError);
  await expect(failed).rejects.toThrow(/Rank 1's process was ended by SIGKILL/);
  expect(await host.encode(TEXTS)).toEqual(expected);
  expect([host.restarts, host.state]).toEqual([1, 'running']);
});

it('a rank that a manager has, as "skein rank" does, joins an encoder', async () => {
  const place = { size: 2, address: join(folder, 'met.sock') };
  const host = await open(
    'bert-mean',
    { pipelineParallelSize: 2 },
    { ranks: { ...place, rank: 0, joinTimeoutMs: 120_000 } },
  );
  const enginePath = await managers.engine('bf16', 'bert-mean');
  const follower = await managers.startRank(
    { ...place, rank: 1 },
    { pipelineParallelSize: 2 },
    { enginePath },
  );
  const expected = await (await open('bert-mean', {})).encode(TEXTS);
  expect(await host.encode(TEXTS)).toEqual(expected);
  await follower.manager.ready;
  await host.close();
  await follower.manager.ended;
  expect(follower.manager.failure).toBeNull();
});

it('requests fail at once while a rank of elsewhere is missing, and run when it is back', async () => {
  const place = { size: 2, address: join(folder, 'back.sock') };
  const told: string[] = [];
  const host = await open(
    'bert-mean',
    { tensorParallelSize: 2 },
    { ranks: { ...place, rank: 0, onMissing: ({ ranks }) => void told.push(ranks.join()) } },
  );
  const enginePath = await managers.engine('bf16', 'bert-mean');
  const join1 = () => managers.startRank({ ...place, rank: 1 }, { tensorParallelSize: 2 }, { enginePath });
  const first = await join1();
  const expected = await host.encode(TEXTS);
  await first.manager.terminate();
  await poll(() => told.length === 3);
  expect(() => host.encode(TEXTS)).toThrow(HostClosedError);
  expect(() => host.encode(TEXTS)).toThrow(
    `The group of ranks is not complete: waiting for rank 1 at ${place.address}.`,
  );
  await join1();
  await poll(() => told.length === 4);
  expect(await host.encode(TEXTS)).toEqual(expected);
  expect(told).toEqual(['1', '', '1', '']);
});
