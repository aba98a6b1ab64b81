import { chmodSync, readdirSync, rmSync, statSync, truncateSync, utimesSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { basename, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { defaultCacheDirectory } from '../../base/home-folder.js';
import { EngineError, openEngine } from '../../engine/building/engine.js';
import { cachedEngine, pruneCache } from '../../engine/building/engine-cache.js';
import {
  BUILD_RULES_VERSION,
  ENGINE_FORMAT_VERSION,
  weightBytesOf,
} from '../../engine/directory/engine-directory.js';
import { CheckpointError } from '../../models/checkpoints/checkpoint.js';
import { safetensorsBytes } from '../../tools/support/safetensors-writer.js';
import { BuildProcess } from '../support/build-process.js';
import { temporaryFolder } from '../support/fresh-folders.js';
import { describeWithTestModel, testModelPath } from '../support/test-model.js';
import { tinyTensors, writeTinyModel } from '../support/tiny-checkpoint.js';

const root = temporaryFolder('skein-cache');
let count = 0;
const fresh = () => join(root, `cache-${count++}`);
const model = writeTinyModel(join(root, 'tiny-model'));

/** Opens the model through the cache and says in which phases. */
async function open(
  cacheDirectory: string,
  options: { model?: string; precision?: string; maxCacheBytes?: number } = {},
) {
  const phases: string[] = [];
  const onProgress = ({ phase }: { phase: string }) => phases.push(phase);
  const engine = await cachedEngine({ model, precision: 'f32', cacheDirectory, onProgress, ...options });
  return { engine, built: phases.includes('converting') };
}

describe('cachedEngine', () => {
  it('builds once, then opens what is there', async () => {
    const cache = fresh();
    const first = await open(cache);
    expect(first.built).toBe(true);
    expect(basename(first.engine.directory)).toMatch(
      new RegExp(`^tiny-model-f32-v${ENGINE_FORMAT_VERSION}\\.${BUILD_RULES_VERSION}-[0-9a-f]{20}$`),
    );
    const second = await open(cache);
    expect(second.built).toBe(false);
    expect(second.engine).toEqual(first.engine);
    expect(readdirSync(cache)).toEqual([basename(first.engine.directory)]);
  });

  it('keeps precisions and models apart, and builds anew when the model changes', async () => {
    const cache = fresh();
    const changing = writeTinyModel(join(root, 'changing'));
    const { engine } = await open(cache, { model: changing });
    expect((await open(cache, { model: changing, precision: 'auto' })).engine.manifest.precision).toBe(
      'bf16',
    );
    const tensors = tinyTensors();
    tensors[0]!.data[0]! ^= 1;
    writeFileSync(join(changing, 'model.safetensors'), safetensorsBytes(tensors));
    const changed = await open(cache, { model: changing });
    expect(changed.built).toBe(true);
    expect(changed.engine.directory).not.toBe(engine.directory);
    expect(readdirSync(cache).length).toBe(3);
  });

  it('builds unusable entries anew: truncated, of another version, no engine at all', async () => {
    const cache = fresh();
    const { engine } = await open(cache);
    const manifest = join(engine.directory, 'engine.json');
    const damages = [
      () => truncateSync(engine.weightsFile, 10),
      () => writeFileSync(manifest, JSON.stringify({ ...engine.manifest, formatVersion: 999 })),
      () => writeFileSync(manifest, ''),
      () => rmSync(manifest),
    ];
    for (const damage of damages) {
      chmodSync(engine.weightsFile, 0o644);
      damage();
      const again = await open(cache);
      expect(again.built).toBe(true);
      expect(again.engine).toEqual(engine);
      expect((await open(cache)).built).toBe(false);
    }
    expect(readdirSync(cache).length).toBe(1);
  });

  it('leaves nothing in the cache where the model is wrong', async () => {
    const cache = fresh();
    const broken = writeTinyModel(join(root, 'broken'), { config: { num_hidden_layers: 3 } });
    await expect(open(cache, { model: broken })).rejects.toThrow(CheckpointError);
    expect(readdirSync(cache)).toEqual([]);
  });

  it.runIf(process.platform === 'linux')(
    'does not wait for ever for a folder that /proc cannot make',
    async () => {
      await expect(open('/proc/skein/cache')).rejects.toThrow(/cache cannot be written/);
    },
  );

  it('says that the cache cannot be written, and what to do', async () => {
    const file = join(root, 'a-file');
    writeFileSync(file, 'x');
    await expect(open(join(file, 'cache'))).rejects.toThrow(EngineError);
    await expect(open(join(file, 'cache'))).rejects.toThrow(/cache cannot be written .* set SKEIN_CACHE_DIR/);
  });

  it('removes what was used longest ago beyond its size, never what it just built', async () => {
    const cache = fresh();
    const models = ['a', 'b', 'c'].map((name) => writeTinyModel(join(root, `prune-${name}`)));
    for (const [i, path] of models.entries()) {
      const { engine } = await open(cache, { model: path });
      const used = new Date(Date.now() - (10 - i) * 60_000);
      utimesSync(join(engine.directory, 'engine.json'), used, used);
    }
    await open(cache, { model: models[0]! }); // used again: now b is the oldest
    const size = (name: string) =>
      readdirSync(join(cache, name)).reduce((sum, f) => sum + statSync(join(cache, name, f)).size, 0);
    const total = readdirSync(cache).reduce((sum, name) => sum + size(name), 0);
    const kept = () =>
      readdirSync(cache)
        .map((name) => name.slice(0, 7))
        .sort();
    expect(pruneCache(cache, total)).toEqual([]);
    expect(pruneCache(cache, total - 1).map((path) => basename(path).slice(0, 7))).toEqual(['prune-b']);
    expect(kept()).toEqual(['prune-a', 'prune-c']);
    const { engine } = await open(cache, { model: models[1]!, maxCacheBytes: 1 });
    expect(readdirSync(cache)).toEqual([basename(engine.directory)]);
  });

  it('finds its directory from SKEIN_CACHE_DIR, XDG_CACHE_HOME or the home directory', () => {
    expect(defaultCacheDirectory({ SKEIN_CACHE_DIR: '/x/y', XDG_CACHE_HOME: '/z' })).toBe('/x/y');
    expect(defaultCacheDirectory({ XDG_CACHE_HOME: '/z' })).toBe('/z/skein');
    expect(defaultCacheDirectory({})).toBe(join(homedir(), '.cache', 'skein'));
  });
});

describe('several processes', () => {
  it('ask at once: one builds, the others wait for it', async () => {
    const cache = fresh();
    const builder = new BuildProcess('cache', model, cache, { hold: true });
    await builder.said('converting');
    const waiting = new BuildProcess('cache', model, cache);
    await waiting.said('waiting');
    builder.release();
    const results = await Promise.all([builder.end(), waiting.end()]);
    expect(results.map(({ code }) => code)).toEqual([0, 0]);
    expect(results[1]!.output).not.toContain('converting');
    const [entry, ...rest] = readdirSync(cache);
    expect(rest).toEqual([]);
    for (const { output } of results) expect(output).toContain(`done ${join(cache, entry!)}\n`);
    openEngine(join(cache, entry!));
  });

  it('both build where the lock is lost: the first one wins, the other takes its engine', async () => {
    const cache = fresh();
    const slow = new BuildProcess('cache', model, cache, { hold: true });
    await slow.said('converting');
    const lock = readdirSync(cache).find((name) => name.endsWith('.lock'))!;
    rmSync(join(cache, lock));
    const { engine, built } = await open(cache);
    expect(built).toBe(true);
    const { ino } = statSync(engine.weightsFile);
    slow.release();
    expect(await slow.end()).toMatchObject({ code: 0, errors: '' });
    expect(readdirSync(cache)).toEqual([basename(engine.directory)]);
    expect(statSync(engine.weightsFile).ino).toBe(ino);
  });

  it('take over from one that was killed', async () => {
    const cache = fresh();
    const killed = new BuildProcess('cache', model, cache, { hold: true });
    await killed.said('converting');
    killed.kill('SIGKILL');
    await killed.end();
    expect(readdirSync(cache).some((name) => name.endsWith('.lock'))).toBe(true);
    expect((await open(cache)).built).toBe(true);
    expect(readdirSync(cache).some((name) => name.endsWith('.lock'))).toBe(false);
  });

  it('leave neither engine nor lock when interrupted', async () => {
    const cache = fresh();
    const child = new BuildProcess('cache', model, cache, { hold: true });
    await child.said('converting');
    child.kill('SIGINT');
    child.release();
    expect(await child.end()).toMatchObject({ code: null, signal: 'SIGINT' });
    expect(readdirSync(cache)).toEqual([]);
  });
});

describe('a cache that cannot be written', () => {
  it('serves what it has and says so for what it has not', async () => {
    const cache = fresh();
    await open(cache);
    const other = writeTinyModel(join(root, 'other-model'));
    for (const path of [root, model, other]) chmodSync(path, 0o755);
    chmodSync(cache, 0o555);
    const reader = await new BuildProcess('cache', model, cache, { unprivileged: true }).end();
    expect(reader).toMatchObject({ code: 0, errors: '' });
    const refused = await new BuildProcess('cache', other, cache, { unprivileged: true }).end();
    chmodSync(cache, 0o755);
    expect(refused.code).toBe(1);
    expect(refused.errors).toMatch(
      /EngineError: .*cache cannot be written \(this user may not write there\)/,
    );
  });
});

describeWithTestModel('cachedEngine of the real model', () => {
  it('builds the whole model and opens it again', async () => {
    const cache = fresh();
    const cold = await open(cache, { model: testModelPath!, precision: 'bf16' });
    expect(cold.built).toBe(true);
    expect(weightBytesOf(cold.engine.manifest)).toBeGreaterThan(269_000_000);
    const warm = await open(cache, { model: testModelPath!, precision: 'bf16' });
    expect(warm.built).toBe(false);
    expect(warm.engine.manifest.config.numLayers).toBe(30);
    for (const built of [true, false]) {
      const automatic = await open(cache, { model: testModelPath!, precision: 'auto' });
      expect(automatic.built).toBe(built);
      expect(automatic.engine.manifest).toMatchObject({ precision: 'int4', outputPrecision: 'int8' });
    }
    rmSync(cache, { recursive: true });
  });
});
