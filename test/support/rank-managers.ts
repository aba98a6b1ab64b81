import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { GptManagerOptions, InferenceRequest, OptionalParams, RanksOptions } from 'skein';
import type { Response } from '../../callbacks/unpack-responses.js';
import type { WeightPrecision } from '../../engine/directory/engine-directory.js';
import { makeRequest } from '../../tools/support/loop-harness.js';
import { runningProcesses } from '../../tools/support/running-processes.js';
import { TestEngines, tinyModelPath } from '../../tools/support/test-engine.js';
import { ManagerClient } from './manager-client.js';

/** A worker that died is restarted at once, and as often as it takes. */
const QUICK = { delayMs: 1, maxDelayMs: 20, maxFailedStarts: 100 };
const TOKENS = 24;
/** Outputs that two runs of one request differ in; a guide may be ready an iteration sooner. */
const VARIABLE = new Set(['random_seed', 'request_times_ms', 'num_iterations']);

export const SECRET = 'a secret of the tests';
export const request = (id: bigint): InferenceRequest => makeRequest(id, [5, 6, 7, Number(id) % 50], TOKENS);

export interface Answer {
  error: string;
  outputs: Response['outputs'];
}

/** Managers of tiny models, alone and as ranks, for one test file. */
export class RankManagers {
  readonly #engines = new TestEngines();
  readonly #clients: ManagerClient[] = [];

  /** Folder of a tiny model's engine. */
  async engine(precision: WeightPrecision = 'bf16', variant = 'gqa'): Promise<string> {
    const model = variant.includes('/') ? variant : tinyModelPath(variant);
    return (await this.#engines.get(model, precision)).directory;
  }

  async start(
    optionalParams: OptionalParams = {},
    more: Partial<GptManagerOptions> = {},
  ): Promise<ManagerClient> {
    const client = new ManagerClient({
      enginePath: more.enginePath ?? (await this.engine()),
      modelType: 'InflightFusedBatching',
      maxBeamWidth: 1,
      schedulerPolicy: 'GUARANTEED_NO_EVICT',
      optionalParams: { threads: 1, maxSeqLen: 128, workerRestart: QUICK, ...optionalParams },
      ...more,
    });
    this.#clients.push(client);
    return client;
  }

  /** One rank of a group of two whose ranks the test starts; that which follows is a process. */
  startRank(
    ranks: Omit<RanksOptions, 'size'>,
    optionalParams: OptionalParams = {},
    more: Partial<GptManagerOptions> = {},
  ): Promise<ManagerClient> {
    const place = { size: 2, joinTimeoutMs: 120_000, ...ranks };
    return this.start({ isolate: ranks.rank > 0, ...optionalParams }, { ranks: place, ...more });
  }

  /** Ends the managers of a test, and waits until no process of a rank is left that the next test could take for its own. */
  async end(): Promise<void> {
    await Promise.all(this.#clients.splice(0).map(({ manager }) => manager.terminate()));
    await poll(() => rankProcesses().length === 0);
  }

  remove(): void {
    this.#engines.remove();
  }
}

/** What a manager answers to requests that come together. */
export async function answers(
  client: ManagerClient,
  ids: readonly bigint[],
  requestOf: (id: bigint) => InferenceRequest = request,
): Promise<Answer[]> {
  await Promise.all(ids.map((id) => client.submit(requestOf(id))));
  return ids.map((id) => {
    const { error, outputs } = client.responses.get(id)!.at(-1)!;
    return { error, outputs: outputs.filter(({ name }) => !VARIABLE.has(name)) };
  });
}

/** Number of tokens of a kind in the statistics of all iterations. */
export function draftTokens({ stats }: ManagerClient, kind: 'numDraftTokens' | 'numAcceptedTokens'): number {
  const counts = stats.map((json) => Number(JSON.parse(json).specDecodingStats?.[kind] ?? 0));
  return counts.reduce((sum, count) => sum + count, 0);
}

export async function poll(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 5));
}

/** Ids of the ranks' processes that this one has started. */
export function rankProcesses(parent = process.pid): number[] {
  const own = runningProcesses().filter((one) => one.parent === parent);
  return own.filter(({ args }) => args.some((arg) => arg.includes('worker-process'))).map(({ pid }) => pid);
}

/**
 * Stops a process, and waits until each of its threads stands still: the signal comes to one of them, and on
 * a busy machine the others continue until that one has its turn.
 */
export async function stopProcess(pid: number): Promise<void> {
  process.kill(pid, 'SIGSTOP');
  await poll(() => isStopped(pid));
}

/** Each thread of a process stands still. */
export function isStopped(pid: number): boolean {
  const folder = join('/proc', String(pid), 'task');
  return readdirSync(folder).every((thread) => {
    try {
      return /\) T /.test(readFileSync(join(folder, thread, 'stat'), 'utf8'));
    } catch {
      return false; // it has ended meanwhile: others may have begun
    }
  });
}
