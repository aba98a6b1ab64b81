import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { crc32 } from 'node:zlib';
import { afterAll, describe, expect, it } from 'vitest';
import { EngineError, loadableEngine, openEngine } from '../../../engine/building/engine.js';
import { cachedEngine } from '../../../engine/building/engine-cache.js';
import { checkWeights } from '../../../engine/building/weights-checksum.js';
import { SourceRows } from '../../../engine/executors/portable/convert/source-rows.js';
import { BuildProcess } from '../../support/build-process.js';
import {
  everyWeight,
  flipInSource,
  logitsOf,
  packedFiles,
  SourceEngines,
} from '../../support/source-engines.js';

/** Puts another file in the place of one, with a time of its own. */
function copyOver(from: string, to: string, time: Date): void {
  copyFileSync(from, `${to}.new`);
  utimesSync(`${to}.new`, time, time);
  renameSync(`${to}.new`, to);
}

const engines = new SourceEngines();
afterAll(() => engines.remove());

describe('the GGUF in which matrices of an engine stay', () => {
  it('may be gone once there are panels', async () => {
    const model = engines.copyOfModel();
    const engine = await engines.cached(model);
    const logits = logitsOf(engine);
    rmSync(model);
    await checkWeights(engine);
    expect(logitsOf(openEngine(engine.directory))).toEqual(logits);
  });

  it('is named where it is gone and has to be read', async () => {
    const model = engines.copyOfModel();
    const engine = await engines.cached(model);
    rmSync(model);
    const told = `${model}: cannot be opened: No such file or directory. Matrices of the engine of ${engine.directory}`;
    expect(() => logitsOf(engine)).toThrow(told);
    expect(() => everyWeight(engine)).toThrow(told);
    await expect(checkWeights(engine)).rejects.toThrow(EngineError);
    await expect(checkWeights(engine)).rejects.toThrow(told);
    expect(packedFiles(engine)).toEqual([]);
    // Panels of one instruction set are of no use to an executor that has none.
    writeFileSync(join(engine.directory, 'packed-scalar-v3.bin'), '');
    await checkWeights(engine);
    await expect(checkWeights(engine, 'wasm')).rejects.toThrow(told);
  });

  it('leaves no engine behind where it changes while one is made of it', async () => {
    const [model, cache] = [engines.copyOfModel(), engines.fresh()];
    const other = engines.copyOfModel();
    const time = new Date(1e12);
    utimesSync(other, time, time);
    const options = { model, precision: 'auto', cacheDirectory: cache } as const;
    const replace = () => copyOver(other, model, time);
    const told = `${model} has changed while an engine was made of it`;
    for (const checksums of ['now', 'when packed'] as const) {
      utimesSync(model, new Date(), new Date());
      const onProgress = ({ phase }: { phase: string }) => void (phase === 'finishing' && replace());
      await expect(cachedEngine({ ...options, checksums, onProgress })).rejects.toThrow(told);
      expect(readdirSync(cache)).toEqual([]);
    }
    const engine = await cachedEngine(options);
    expect(engine.manifest.sourceFile!.modifiedMs).toBe(1e12);
  });

  it('has no half-written panels of killed processes beside its engine for long', async () => {
    const [model, cache] = [engines.copyOfModel(), engines.fresh()];
    const { directory } = await engines.cached(model, cache);
    const [old, young] = ['packed-avx2-v2.bin.7-0.tmp', 'packed-avx2-v2.bin.8-0.tmp'] as const;
    for (const name of [old, young]) writeFileSync(join(directory, name), 'panels');
    const before = new Date(Date.now() - 11 * 60_000);
    utimesSync(join(directory, old), before, before);
    await engines.cached(model, cache);
    expect(readdirSync(directory).filter((name) => name.endsWith('.tmp'))).toEqual([young]);
  });

  it('leaves no panels behind where it changes before they are packed for the first time', async () => {
    const [model, cache] = [engines.copyOfModel(), engines.fresh()];
    const options = { model, precision: 'auto', cacheDirectory: cache, checksums: 'when packed' } as const;
    const engine = await cachedEngine(options);
    utimesSync(model, new Date(1e12), new Date(1e12));
    expect(() => logitsOf(engine)).toThrow(
      `${model} is not as it was when the engine in ${engine.directory} was made`,
    );
    expect(packedFiles(engine)).toEqual([]);
    expect(readdirSync(engine.directory)).not.toContain('source-checksums.json');
    await expect(cachedEngine({ ...options, checksums: 'now' })).resolves.not.toBe(engine.directory);
  });

  it('is found where it was moved to, without a new engine', async () => {
    const [model, cache] = [engines.copyOfModel(), engines.fresh()];
    const first = await engines.cached(model, cache);
    const logits = logitsOf(first);
    const moved = join(engines.fresh(), basename(model));
    mkdirSync(dirname(moved));
    renameSync(model, moved);
    const { ino } = statSync(first.weightsFile);
    const again = await engines.cached(moved, cache);
    expect(statSync(again.weightsFile).ino).toBe(ino);
    expect(again.manifest.sourceFile!.path).toBe(moved);
    expect(openEngine(first.directory)).toEqual(again);
    expect(readdirSync(first.directory).filter((name) => name.endsWith('.tmp'))).toEqual([]);
    // The panels that were there are those of the engine in its new place, and can be made from there.
    const [packed] = packedFiles(again);
    const made = statSync(packed!).ino;
    expect(logitsOf(again)).toEqual(logits);
    expect(statSync(packed!).ino).toBe(made);
    for (const file of packedFiles(again)) rmSync(file);
    expect(logitsOf(again)).toEqual(logits);
  });

  it('may be in places of their own for those that share a cache', async () => {
    const [model, cache] = [engines.copyOfModel(), engines.fresh()];
    const logits = logitsOf(await engines.cached(model, cache));
    const elsewhere = join(engines.fresh(), basename(model));
    mkdirSync(dirname(elsewhere));
    renameSync(model, elsewhere);
    const second = await engines.cached(elsewhere, cache);
    renameSync(elsewhere, model);
    const first = await engines.cached(model, cache);
    expect(first.manifest.sourceFile).toMatchObject({ path: model, otherPaths: [elsewhere] });
    for (const file of packedFiles(first)) rmSync(file);
    // One that is open is the one of a process that has the other place.
    expect(second.manifest.sourceFile!.path).toBe(elsewhere);
    expect(logitsOf(openEngine(first.directory))).toEqual(logits);
    const { sourceFile } = JSON.parse(readFileSync(join(first.directory, 'engine.json'), 'utf8'));
    expect(sourceFile).toMatchObject({ path: elsewhere, otherPaths: [model] });
  });

  it('may move where the cache cannot be written to: panels serve, and who needs the file is told which', async () => {
    const [model, cache] = [engines.copyOfModel(), engines.fresh()];
    const engine = await engines.cached(model, cache, 'f32');
    const logits = logitsOf(engine);
    const moved = join(engines.fresh(), basename(model));
    mkdirSync(dirname(moved));
    renameSync(model, moved);
    for (const folder of [dirname(cache), dirname(moved)]) chmodSync(folder, 0o755);
    for (const folder of [cache, engine.directory]) chmodSync(folder, 0o555);
    const reader = await new BuildProcess('cache', moved, cache, { unprivileged: true }).end();
    for (const folder of [cache, engine.directory]) chmodSync(folder, 0o755);
    expect(reader).toMatchObject({ code: 0, errors: '', output: `done ${engine.directory}\n` });
    const opened = openEngine(engine.directory);
    expect(opened.manifest.sourceFile!.path).toBe(model);
    expect(logitsOf(opened)).toEqual(logits);
    for (const file of packedFiles(opened)) rmSync(file);
    expect(() => logitsOf(opened)).toThrow(`${model}: cannot be opened`);
  });

  it('is refused by the name of the tensor that has changed, and the engine built anew', async () => {
    const [model, cache] = [engines.copyOfModel(), engines.fresh()];
    const engine = await engines.cached(model, cache);
    const tensor = engine.manifest.tensors.find(({ name }) => name.endsWith('gateUp'))!;
    flipInSource(model, tensor);
    const told = `${model}: the bytes of ${tensor.name} are not those that were built`;
    expect(() => logitsOf(engine)).toThrow(told);
    await expect(checkWeights(engine)).rejects.toThrow(told);
    expect(packedFiles(engine)).toEqual([]);
    const said: string[] = [];
    const again = await cachedEngine({
      model,
      precision: 'auto',
      cacheDirectory: cache,
      onDamaged: (message) => said.push(message),
    });
    expect(said).toEqual([expect.stringContaining(`${told}, the disk or a program has changed them; it is`)]);
    expect(logitsOf(again)).toEqual(logitsOf(await engines.complete(model)));
  });

  it('is refused where it was cut off', async () => {
    const model = engines.copyOfModel();
    const engine = await engines.cached(model);
    truncateSync(model, statSync(model).size >> 1);
    const told =
      /q4-k-m\.gguf: tensor bytes \d+ to \d+ lie beyond the file's \d+ bytes\. Matrices of the engine/;
    expect(() => logitsOf(engine)).toThrow(told);
    expect(() => everyWeight(engine)).toThrow(told);
    await expect(checkWeights(engine)).rejects.toThrow(told);
  });

  it('is summed up alike by the addon and by TypeScript', async () => {
    for (const [, model] of engines.models()) {
      const engine = await engines.cached(model);
      for (const { jobs, checksum, rows } of loadableEngine(engine).tensors) {
        if (jobs === undefined) continue;
        const source = new SourceRows(jobs);
        expect(source.rows).toBe(rows);
        expect(crc32(source.read(0, rows))).toBe(checksum);
        // In pieces that begin and end anywhere.
        let sum = 0;
        for (let first = 0, size = 1; first < rows; first += size, size = (size * 7) % 97)
          sum = crc32(source.read(first, Math.min(size, rows - first)), sum);
        expect(sum).toBe(checksum);
        source.close();
      }
    }
  });
});
