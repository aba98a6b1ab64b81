import { GptManager } from 'skein';
import { afterAll, describe, expect, it } from 'vitest';
import { Answer } from '../../tools/soak/answer.js';
import { MIXES } from '../../tools/soak/mixes.js';
import { runSoak, type SoakOptions } from '../../tools/soak/soak.js';
import { TestEngines, tinyModelPath } from '../../tools/support/test-engine.js';

/** The short form of `npm run soak`. */
const SECONDS = Number(process.env.SKEIN_SOAK_SECONDS ?? 10);

/** Requests of each mix, on the slowest machine too. */
const MIN_REQUESTS = 12;

const engines = new TestEngines();
afterAll(() => engines.remove());

function soak(options: Pick<SoakOptions, 'seconds' | 'seed' | 'mixes' | 'leastRequests'>) {
  const engineOf: SoakOptions['engineOf'] = async (precision) => {
    const { directory, manifest } = await engines.get(tinyModelPath('gqa'), precision);
    return { path: directory, vocabSize: manifest.config.vocabSize };
  };
  return runSoak({ Manager: GptManager, engineOf, ...options });
}

describe('the soak', () => {
  it('finds nothing: no block, thread, handle or memory lost, every answer as it is alone', async () => {
    const { failures, mixes } = await soak({ seconds: SECONDS, seed: 1, leastRequests: MIN_REQUESTS });
    expect(failures).toEqual([]);
    for (const { name, counts, compared } of mixes) {
      expect(counts.requests, name).toBeGreaterThanOrEqual(MIN_REQUESTS);
      expect(compared, name).toBeGreaterThan(0);
    }
    const total = (count: 'pauses' | 'reusedTokens' | 'cancelled' | 'refused') =>
      mixes.reduce((sum, { counts }) => sum + counts[count], 0);
    for (const count of ['pauses', 'reusedTokens', 'cancelled', 'refused'] as const) {
      expect(total(count), count).toBeGreaterThan(0);
    }
  });

  it('finds an executor whose answers depend on the crowd', async () => {
    const executorModule = new URL('../support/modules/crowd-dependent-executor.mjs', import.meta.url);
    const [mix] = MIXES;
    const faulty = { ...mix!, crowd: { ...mix!.crowd, executorModule } };
    const { failures } = await soak({ seconds: 2, seed: 2, mixes: [faulty], leastRequests: MIN_REQUESTS });
    expect(failures[0]).toMatch(/answered (output|top|cum)_log_prob/);
  });

  it('finds a manager that dies', async () => {
    const executorModule = new URL('../support/modules/none.mjs', import.meta.url);
    const [mix] = MIXES;
    await expect(
      soak({ seconds: 6, seed: 3, mixes: [{ ...mix!, crowd: { executorModule } }] }),
    ).rejects.toThrow(/none\.mjs/);
  });
});

describe('answers', () => {
  const tokens = (...ids: number[]) => ({
    name: 'output_ids',
    shape: [1, 1, ids.length],
    data: Int32Array.from(ids),
  });
  const length = (n: number) => ({ name: 'sequence_length', shape: [1, 1], data: Int32Array.of(n) });
  const answer = (...parts: ReturnType<typeof tokens>[][]) => {
    const built = new Answer();
    for (const [i, part] of parts.entries()) built.add(part, i === parts.length - 1, '');
    return built;
  };

  it('are the same however they were cut into responses', () => {
    const whole = answer([tokens(1, 2, 3), length(5)]);
    expect(answer([tokens(1), length(3)], [tokens(2, 3), length(5)]).differenceFrom(whole, false)).toBeNull();
    expect(answer([tokens(1, 2, 4), length(5)]).differenceFrom(whole, false)).toMatch(/^output_ids: 1,2,4/);
    expect(answer([tokens(1, 2), length(4)]).differenceFrom(whole, false)).toMatch(/^output_ids/);
  });

  it('that were cut short are the beginning of the whole', () => {
    const whole = answer([tokens(1, 2, 3), length(5)]);
    expect(answer([tokens(1, 2), length(4)]).differenceFrom(whole, true)).toBeNull();
    expect(answer([tokens(2), length(3)]).differenceFrom(whole, true)).toMatch(/^output_ids/);
    expect(answer([tokens(1, 2, 3, 4), length(6)]).differenceFrom(whole, true)).toMatch(/^output_ids/);
  });

  it('end once', () => {
    const ended = answer([tokens(1), length(2)]);
    expect(() => ended.add([], true, 'again')).toThrow(/after the final one/);
  });
});
