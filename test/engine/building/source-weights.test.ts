import { readdirSync, renameSync, rmSync, statSync, utimesSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { loadableEngine, openEngine } from '../../../engine/building/engine.js';
import { cachedEngine } from '../../../engine/building/engine-cache.js';
import { checkWeights } from '../../../engine/building/weights-checksum.js';
import { type EngineTensor, weightBytesOf } from '../../../engine/directory/engine-directory.js';
import { hasSourceChanged } from '../../../engine/directory/source-tensors.js';
import { modelName } from '../../../engine/ranks/model-name.js';
import { BuildProcess } from '../../support/build-process.js';
import { instructionSets } from '../../support/native-options.js';
import { everyWeight, logitsOf, packedFiles, panelsOf, SourceEngines } from '../../support/source-engines.js';
import { writeTinyModel } from '../../support/tiny-checkpoint.js';

const engines = new SourceEngines();
afterAll(() => engines.remove());
const models = engines.models();

describe('an engine of the cache whose matrices stay in a GGUF', () => {
  it('has in weights.bin only what a step reads by its rows', async () => {
    const phases: string[] = [];
    const onProgress = ({ phase, done, total }: { phase: string; done: number; total: number }) => {
      expect(done).toBeLessThanOrEqual(total);
      if (phases.at(-1) !== phase) phases.push(phase);
    };
    const engine = await cachedEngine({
      model: engines.mixed,
      precision: 'auto',
      cacheDirectory: engines.fresh(),
      onProgress,
    });
    expect(phases).toEqual(['reading', 'converting', 'summing', 'finishing']);
    const { manifest } = engine;
    expect(manifest.formatVersion).toBe(3);
    const { size, mtimeMs } = statSync(engines.mixed);
    expect(manifest.sourceFile).toEqual({ path: engines.mixed, byteLength: size, modifiedMs: mtimeMs });
    const here = manifest.tensors.filter(({ pieces }) => pieces === undefined);
    expect(here.filter(({ rows }) => rows > 1).map(({ name }) => name)).toEqual(['embedding']);
    expect(statSync(engine.weightsFile).size).toBe(manifest.weightsByteLength);
    expect(manifest.weightsByteLength).toBeLessThan(0.01 * statSync(engines.mixed).size);
    expect(openEngine(engine.directory)).toEqual(engine);
    await checkWeights(engine);
  });

  it('says of its weights what an engine with all of them says', async () => {
    const [engine, whole] = [await engines.cached(engines.mixed), await engines.complete(engines.mixed)];
    expect(whole.manifest.formatVersion).toBe(2);
    const contentOf = (tensors: readonly EngineTensor[]) =>
      tensors.map(({ offset: _, pieces: __, ...content }) => content);
    expect(contentOf(engine.manifest.tensors)).toEqual(contentOf(whole.manifest.tensors));
    const bytes = whole.manifest.weightsByteLength;
    // Tensors of weights.bin begin at multiples of 64 bytes.
    expect(Math.abs(weightBytesOf(engine.manifest) - bytes)).toBeLessThan(
      64 * engine.manifest.tensors.length,
    );
    expect(modelName(loadableEngine(engine))).toBe(modelName(loadableEngine(whole)));
  });

  it('has the answers of the whole file where it is split, wherever its parts lie together', async () => {
    const first = engines.split();
    const cacheDirectory = engines.fresh();
    const engine = await engines.cached(first, cacheDirectory);
    expect(engine.manifest.formatVersion).toBe(4);
    const { sourceFile, tensors } = engine.manifest;
    expect(sourceFile).toMatchObject({ path: first, otherParts: [{}, {}] });
    const parts = new Set(tensors.flatMap(({ pieces = [] }) => pieces.map(({ part = 0 }) => part)));
    expect([...parts].sort()).toEqual([0, 1, 2]);
    const answers = logitsOf(await engines.cached(engines.mixed));
    expect(logitsOf(engine)).toEqual(answers);
    const moved = engines.fresh();
    renameSync(dirname(first), moved);
    const found = await engines.cached(join(moved, basename(first)), cacheDirectory);
    expect(found.directory).toBe(engine.directory);
    for (const file of packedFiles(found)) rmSync(file);
    expect(logitsOf(found)).toEqual(answers);
  });

  it('is refused where a part of it is another one than it was', async () => {
    const first = engines.split();
    const engine = await engines.cached(first);
    const last = join(dirname(first), engine.manifest.sourceFile!.otherParts!.at(-1)!.name);
    utimesSync(last, 1, 1);
    expect(hasSourceChanged(loadableEngine(openEngine(engine.directory)).tensors)).toBe(true);
  });

  it.each(models)('has the panels and the answers of an engine with all weights, %s', async (_, model) => {
    const [engine, whole] = [await engines.cached(model), await engines.complete(model)];
    expect(engine.manifest.sourceFile).toBeDefined();
    for (const instructionSet of instructionSets) {
      expect(logitsOf(engine, { instructionSet })).toEqual(logitsOf(whole, { instructionSet }));
    }
    expect(packedFiles(engine).length).toBe(instructionSets.length);
    const panels = panelsOf(whole);
    for (const [i, own] of panelsOf(engine).entries()) expect(own.equals(panels[i]!)).toBe(true);
  });

  it.each(models)('is read by executors that have no panels, %s', async (_, model) => {
    const [own, whole] = [
      everyWeight(await engines.cached(model)),
      everyWeight(await engines.complete(model)),
    ];
    expect(own.size).toBe(whole.size);
    for (const [name, values] of whole) expect(own.get(name)!.equals(values), name).toBe(true);
  });

  it.each(['bf16', 'f32'])('leaves them there in %s too, which is made quickly', async (precision) => {
    const [engine, whole] = [
      await engines.cached(engines.mixed, engines.fresh(), precision),
      await engines.complete(engines.mixed, engines.fresh(), precision),
    ];
    expect(engine.manifest.tensors.filter(({ pieces }) => pieces !== undefined).length).toBeGreaterThan(7);
    expect(logitsOf(engine)).toEqual(logitsOf(whole));
  });

  it('has all of them where they are rounded to int8 or int4, or come from safetensors', async () => {
    for (const precision of ['int8', 'int4']) {
      const { manifest } = await engines.cached(engines.mixed, engines.fresh(), precision);
      expect(manifest.formatVersion).toBe(2);
      expect(manifest.tensors.some(({ pieces }) => pieces !== undefined)).toBe(false);
    }
    const { manifest } = await engines.cached(writeTinyModel(engines.fresh()), engines.fresh(), 'f32');
    expect(manifest.formatVersion).toBe(2);
    expect(manifest.sourceFile).toBeUndefined();
  });

  it('is not built anew where an engine with all weights is there already', async () => {
    const cache = engines.fresh();
    const { directory } = await engines.cached(engines.mixed, cache);
    rmSync(directory, { recursive: true });
    await engines.complete(engines.mixed, directory);
    const engine = await engines.cached(engines.mixed, cache);
    expect(engine.manifest.formatVersion).toBe(2);
    expect(engine.directory).toBe(directory);
  });

  it('is built once by processes that ask at once', async () => {
    const cache = engines.fresh();
    const builder = new BuildProcess('cache', engines.mixed, cache, { hold: true });
    await builder.said('converting');
    const waiting = new BuildProcess('cache', engines.mixed, cache);
    await waiting.said('waiting');
    builder.release();
    const results = await Promise.all([builder.end(), waiting.end()]);
    expect(results.map(({ code }) => code)).toEqual([0, 0]);
    expect(results[0]!.output).toContain('summing');
    expect(results[1]!.output).not.toContain('summing');
    expect(readdirSync(cache).length).toBe(1);
  });
});
