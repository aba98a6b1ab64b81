import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { type Engine, loadableEngine, openEngine } from '../../../engine/building/engine.js';
import { cachedEngine } from '../../../engine/building/engine-cache.js';
import { checkWeights } from '../../../engine/building/weights-checksum.js';
import { modelName } from '../../../engine/ranks/model-name.js';
import { flipInSource, logitsOf, packedFiles, SourceEngines } from '../../support/source-engines.js';

const engines = new SourceEngines();
afterAll(() => engines.remove());

const sumsOf = ({ manifest }: Engine) => manifest.tensors.map(({ checksum }) => checksum);
const fileOf = ({ directory }: Engine) => join(directory, 'source-checksums.json');

/** An engine whose packing is to find the checksums, and the phases in which it was made. */
async function unsummed(model = engines.mixed, cacheDirectory = engines.fresh()) {
  const phases: string[] = [];
  const engine = await cachedEngine({
    model,
    precision: 'auto',
    cacheDirectory,
    checksums: 'when packed',
    onProgress: ({ phase }) => phases.push(phase),
  });
  return { engine, phases, cacheDirectory };
}

describe('checksums of matrices that stay in a GGUF', () => {
  it.each(engines.models())('are found by whoever packs them first, %s', async (_, model) => {
    const { engine, phases } = await unsummed(model);
    expect(phases).not.toContain('summing');
    for (const { pieces, checksum } of engine.manifest.tensors)
      expect(checksum === undefined).toBe(pieces !== undefined);
    await checkWeights(engine);
    const whole = await engines.complete(model);
    expect(logitsOf(engine)).toEqual(logitsOf(whole));
    expect(sumsOf(openEngine(engine.directory))).toEqual(sumsOf(whole));
  });

  it('are compared from then on', async () => {
    const model = engines.copyOfModel();
    const { engine, cacheDirectory } = await unsummed(model);
    logitsOf(engine);
    const summed = openEngine(engine.directory);
    const tensor = summed.manifest.tensors.find(({ name }) => name.endsWith('down'))!;
    flipInSource(model, tensor);
    for (const file of packedFiles(engine)) rmSync(file);
    const told = `${model}: the bytes of ${tensor.name} are not those that were built`;
    expect(() => logitsOf(summed)).toThrow(told);
    const said: string[] = [];
    const options = { model, precision: 'auto', cacheDirectory, checksums: 'when packed' } as const;
    await cachedEngine({ ...options, onDamaged: (message) => said.push(message) });
    expect(said).toEqual([expect.stringContaining(told)]);
    expect(existsSync(fileOf(engine))).toBe(false);
  });

  it('are found at once for ranks, which compare them, also in an engine that is there', async () => {
    const { engine, cacheDirectory } = await unsummed();
    const whole = await engines.complete(engines.mixed);
    const phases: string[] = [];
    const onProgress = ({ phase }: { phase: string }) => phases.push(phase);
    const again = await cachedEngine({
      model: engines.mixed,
      precision: 'auto',
      cacheDirectory,
      onProgress,
    });
    expect([...new Set(phases)]).toEqual(['summing', 'finishing']);
    expect(again.directory).toBe(engine.directory);
    expect(sumsOf(again)).toEqual(sumsOf(whole));
    expect(openEngine(engine.directory)).toEqual(again);
    expect(modelName(loadableEngine(again))).toBe(modelName(loadableEngine(whole)));
  });

  it.each<[string, (text: string) => string]>([
    ['no JSON', (text) => text.slice(1)],
    ['no list', () => '{}'],
    ['a list of another length', () => '[1]'],
    ['no numbers', (text) => text.replace(/\d+/g, '"1"')],
    ['numbers that are no checksums', (text) => text.replace(/\d+/g, '4294967296')],
    ['more than a list can take', (text) => text.padEnd(10_000)],
    ['nothing', () => ''],
  ])('are found again where their file has %s', async (_, change) => {
    const { engine } = await unsummed();
    logitsOf(engine);
    const text = readFileSync(fileOf(engine), 'utf8');
    writeFileSync(fileOf(engine), change(text));
    const opened = openEngine(engine.directory);
    expect(sumsOf(opened)).toEqual(sumsOf(engine));
    for (const file of packedFiles(engine)) rmSync(file);
    logitsOf(opened);
    expect(readFileSync(fileOf(engine), 'utf8')).toBe(text);
  });
});
