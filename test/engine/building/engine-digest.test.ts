import { chmodSync, mkdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { loadableEngine, openEngine } from '../../../engine/building/engine.js';
import { cachedEngine } from '../../../engine/building/engine-cache.js';
import { engineDigest } from '../../../engine/building/engine-digest.js';
import { digestOfPath, engineFingerprint } from '../../../engine/building/engine-fingerprint.js';
import { NativeExecutor } from '../../../engine/executors/native/native-executor.js';
import { executorOptions } from '../../support/native-options.js';
import { SourceEngines } from '../../support/source-engines.js';

const engines = new SourceEngines();
afterAll(() => engines.remove());

/** The same model as another machine may have it: in another folder, under another name, written at another time. */
function elsewhere(name: string, change: (bytes: Buffer) => void = () => {}): string {
  const file = join(engines.fresh(), name);
  mkdirSync(dirname(file));
  const bytes = readFileSync(engines.mixed);
  change(bytes);
  writeFileSync(file, bytes);
  utimesSync(file, 1_000_000, 1_000_000);
  return file;
}

describe('the digest of an engine', () => {
  it('is that of its content, wherever the model lies and whenever it was written', async () => {
    const digests = [
      engineDigest(await engines.cached(engines.mixed)),
      engineDigest(await engines.cached(elsewhere('renamed.gguf'))),
      engineDigest(await engines.complete(elsewhere(basename(engines.mixed)))),
    ];
    expect(new Set(digests).size).toBe(1);
    expect(digests[0]).toMatch(/^[0-9a-f]{64}$/);
  });

  it('changes with one bit of a weight in the middle, though name, length and times are the same', async () => {
    const plain = elsewhere('model.gguf');
    // The last bytes are weights, and none of those that the cache samples.
    const other = elsewhere('model.gguf', (bytes) =>
      bytes.writeUInt8(bytes.readUInt8(bytes.length - 100) ^ 1, bytes.length - 100),
    );
    expect(engineDigest(await engines.cached(other))).not.toBe(engineDigest(await engines.cached(plain)));
  });

  it('changes with the precision and with the tokenizer', async () => {
    const whole = await engines.complete(engines.mixed);
    const digest = engineDigest(whole);
    expect(digestOfPath(whole.directory)).toBe(digest);
    const rounded = await engines.complete(engines.mixed, engines.fresh(), 'bf16');
    expect(engineDigest(rounded)).not.toBe(digest);
    const tokenizer = join(whole.directory, 'tokenizer_config.json');
    chmodSync(tokenizer, 0o644);
    writeFileSync(tokenizer, readFileSync(tokenizer, 'utf8').replace('{', '{"extra": 1, '));
    expect(engineDigest(openEngine(whole.directory))).not.toBe(digest);
  });

  it('has the checksums that the executor finds while it packs, also where they cannot be kept', async () => {
    const expected = engineDigest(await engines.cached(engines.mixed));
    const options = { model: engines.mixed, precision: 'auto', cacheDirectory: engines.fresh() };
    const engine = await cachedEngine({ ...options, checksums: 'when packed' });
    // The weights were not read yet.
    expect(engineDigest(engine)).not.toBe(expected);
    const loadable = loadableEngine(engine);
    new NativeExecutor(loadable, executorOptions()).close();
    expect(engineDigest(engine, loadable.tensors)).toBe(expected);
    rmSync(join(engine.directory, 'source-checksums.json'));
    expect(engineDigest(engine, loadable.tensors)).toBe(expected);
  });

  it('is nothing where there is no engine', () => {
    expect(digestOfPath(engines.fresh())).toBe('');
  });
});

describe('the fingerprint of a running engine', () => {
  const options = executorOptions();
  const computing = { name: 'native' as const, instructionSet: 'avx2', options };
  const fingerprint = (change: object = {}) => engineFingerprint('digest', { ...computing, ...change });

  it('changes with what changes bits', () => {
    const all = [
      fingerprint(),
      engineFingerprint('other', computing),
      fingerprint({ name: 'wasm' }),
      fingerprint({ instructionSet: 'avx512' }),
      fingerprint({ options: { ...options, kvDtype: 'int8' } }),
      fingerprint({ options: { ...options, maxAttentionWindow: 64 } }),
      fingerprint({ options: { ...options, maxAttentionWindow: 64, sinkTokenLength: 4 } }),
    ];
    expect(new Set(all).size).toBe(all.length);
    for (const one of all) expect(one).toMatch(/^fp_[0-9a-f]{12}$/);
  });

  it('does not change with what changes none', () => {
    const { threads, numBlocks, maxNumTokens } = options;
    const others = { threads: threads + 1, numBlocks: numBlocks + 1, maxNumTokens: maxNumTokens + 1 };
    expect(fingerprint({ options: { ...options, ...others } })).toBe(fingerprint());
  });
});
