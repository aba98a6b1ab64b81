import {
  chmodSync,
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { buildEngine } from '../../../engine/building/builder.js';
import { type Engine, EngineError, openEngine } from '../../../engine/building/engine.js';
import { FORMAT_VERSIONS } from '../../../engine/directory/engine-directory.js';
import { CheckpointError } from '../../../models/checkpoints/checkpoint.js';
import { readTokenizerFiles, Tokenizer } from '../../../models/tokenizer/index.js';
import { BuildProcess } from '../../support/build-process.js';
import { temporaryFolder } from '../../support/fresh-folders.js';
import {
  ggufTensors,
  TINY_CONFIG,
  TINY_TOKENIZER,
  tinyTensors,
  tinyValues,
  writeTinyGguf,
  writeTinyModel,
} from '../../support/tiny-checkpoint.js';

const root = temporaryFolder('skein-builder');
let count = 0;
const fresh = () => join(root, `engine-${count++}`);
const model = writeTinyModel(join(root, 'model'));

/** The floats of a weight in weights.bin. */
function weight(engine: Engine, name: string): number[] {
  const { offset, byteLength, dtype } = engine.manifest.tensors.find((tensor) => tensor.name === name)!;
  const bytes = readFileSync(engine.weightsFile).subarray(offset, offset + byteLength);
  const words = new Uint8Array(bytes).buffer;
  if (dtype === 'f32') return [...new Float32Array(words)];
  return [...new Float32Array(Uint32Array.from(new Uint16Array(words), (word) => word << 16).buffer)];
}

describe('buildEngine', () => {
  for (const precision of ['f32', 'bf16'] as const) {
    it(`stacks every tensor in its place in ${precision}, from safetensors and from GGUF alike`, async () => {
      const gguf = writeTinyGguf(join(root, 'tiny.gguf'));
      const engines = [
        await buildEngine({ model, outputDirectory: fresh(), precision }),
        await buildEngine({ model: gguf, outputDirectory: fresh(), precision }),
      ];
      for (const engine of engines) {
        for (const { name, sources } of engine.plan.weights) {
          expect(weight(engine, name)).toEqual(sources.flatMap((source) => [...tinyValues(source.name)]));
        }
        expect(engine.manifest).toMatchObject({ precision, maxInputLen: 32, maxSeqLen: 32 });
        const dtypes = new Set(
          engine.plan.weights.map(({ kind }, i) => `${kind} ${engine.manifest.tensors[i]!.dtype}`),
        );
        expect(dtypes).toEqual(new Set([`matrix ${precision}`, 'vector f32']));
        expect(engine.manifest.tensors.every(({ offset }) => offset % 64 === 0)).toBe(true);
        expect(engine.manifest.tensors.filter(({ rows }) => rows === TINY_CONFIG.vocab_size).length).toBe(1);
      }
      expect(readFileSync(engines[0]!.weightsFile).equals(readFileSync(engines[1]!.weightsFile))).toBe(true);
      expect(readFileSync(join(engines[1]!.directory, 'chat_template.jinja'), 'utf8')).toContain('messages');
      expect(openEngine(engines[0]!.directory)).toEqual(engines[0]);
    });
  }

  it('restores the order of biases that llama.cpp interleaved', async () => {
    const biases = [0, 1].flatMap((layer) =>
      (['q', 'k', 'v', 'o'] as const).map((which) => {
        const length = which === 'q' || which === 'o' ? 8 : 4;
        const values = Float32Array.from({ length }, (_, i) => i + 1);
        return { name: `model.layers.${layer}.self_attn.${which}_proj.bias`, shape: [length], values };
      }),
    );
    const data = biases.map(({ values, ...rest }) => ({ ...rest, data: new Uint8Array(values.buffer) }));
    const gguf = writeTinyGguf(join(root, 'biased.gguf'), {
      tensors: ggufTensors([...tinyTensors(), ...data]),
    });
    const engine = await buildEngine({ model: gguf, outputDirectory: fresh(), precision: 'bf16' });
    expect(weight(engine, 'layers.1.qkv.bias')).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 1, 2, 3, 4]);
  });

  it('keeps the tokenizer as it came, and its vocabulary once more as tables', async () => {
    const { directory } = await buildEngine({ model, outputDirectory: fresh(), precision: 'f32' });
    expect(JSON.parse(readFileSync(join(directory, 'tokenizer.json'), 'utf8'))).toEqual(TINY_TOKENIZER);
    const files = await readTokenizerFiles(directory);
    expect(files.tables?.sizes).toMatchObject({ numSymbols: 6, numIds: 6, numMerges: 1, longest: 5 });
    expect([...new Tokenizer(files).encode('abba', { addSpecialTokens: false })]).toEqual([5, 4, 3]);
  });

  it('reports its progress, in order', async () => {
    const seen: { phase: string; done: number; total: number }[] = [];
    const engine = await buildEngine({
      model,
      outputDirectory: fresh(),
      precision: 'auto',
      onProgress: (p) => seen.push(p),
    });
    expect(seen.map(({ phase }) => phase)).toEqual(['reading', 'converting', 'finishing']);
    expect(seen.at(-1)).toMatchObject({
      done: engine.manifest.weightsByteLength,
      total: engine.manifest.weightsByteLength,
    });
  });

  it('replaces an engine, but nothing else', async () => {
    const outputDirectory = fresh();
    await buildEngine({ model, outputDirectory, precision: 'f32' });
    const engine = await buildEngine({ model, outputDirectory, precision: 'bf16' });
    expect(engine.manifest.precision).toBe('bf16');
    const other = fresh();
    mkdirSync(other);
    writeFileSync(join(other, 'thesis.txt'), 'x');
    await expect(buildEngine({ model, outputDirectory: other, precision: 'f32' })).rejects.toThrow(
      /not an engine directory/,
    );
    expect(readdirSync(other)).toEqual(['thesis.txt']);
    const path = join(root, 'file');
    writeFileSync(path, 'x');
    await expect(buildEngine({ model, outputDirectory: path, precision: 'f32' })).rejects.toThrow(
      EngineError,
    );
    const below = buildEngine({ model, outputDirectory: join(path, 'engine'), precision: 'f32' });
    await expect(below).rejects.toThrow(/file\/engine: cannot be written/);
  });

  it('leaves nothing behind on an error, and the old engine where it was', async () => {
    const parent = fresh();
    const outputDirectory = join(parent, 'engine');
    await buildEngine({ model, outputDirectory, precision: 'f32' });
    const before = readFileSync(join(outputDirectory, 'engine.json'), 'utf8');
    const broken = join(root, 'broken');
    cpSync(model, broken, { recursive: true });
    const shrinks = () => truncateSync(join(broken, 'model.safetensors'), 500);
    const vanishing = buildEngine({
      model: broken,
      outputDirectory,
      precision: 'f32',
      onProgress: ({ phase }) => phase === 'converting' && shrinks(),
    });
    await expect(vanishing).rejects.toThrow(/model\.safetensors.*beyond the file's 500 bytes/);
    await expect(vanishing).rejects.toThrow(CheckpointError);
    await expect(buildEngine({ model: broken, outputDirectory, precision: 'f32' })).rejects.toThrow(
      CheckpointError,
    );
    const controller = new AbortController();
    const aborted = buildEngine({
      model,
      outputDirectory,
      precision: 'f32',
      signal: controller.signal,
      onProgress: ({ phase }) => phase === 'converting' && controller.abort(),
    });
    await expect(aborted).rejects.toThrow(/abort/);
    expect(readdirSync(parent)).toEqual(['engine']);
    expect(readFileSync(join(outputDirectory, 'engine.json'), 'utf8')).toBe(before);
    expect(process.listenerCount('SIGINT')).toBe(0);
  });

  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    it(`leaves nothing behind on ${signal}, and dies of it`, async () => {
      const parent = fresh();
      const child = new BuildProcess('directory', model, join(parent, 'engine'), { hold: true });
      await child.said('converting');
      expect(readdirSync(parent).length).toBe(1);
      child.kill(signal);
      child.release();
      expect(await child.end()).toMatchObject({ code: null, signal });
      expect(readdirSync(parent)).toEqual([]);
    });
  }

  it('removes what a killed process left, once it is old', async () => {
    const parent = fresh();
    const child = new BuildProcess('directory', model, join(parent, 'engine'), { hold: true });
    await child.said('converting');
    child.kill('SIGKILL');
    await child.end();
    const [left] = readdirSync(parent);
    expect(left).toMatch(/^\.engine\.building-/);
    const long = new Date(Date.now() - 3_600_000);
    utimesSync(join(parent, left!), long, long);
    await buildEngine({ model, outputDirectory: join(parent, 'engine'), precision: 'f32' });
    expect(readdirSync(parent)).toEqual(['engine']);
  });

  it('lets dynamic RoPE run to its stretched length', async () => {
    const dynamic = writeTinyModel(join(root, 'dynamic'), {
      config: { rope_scaling: { type: 'dynamic', factor: 2.5 } },
    });
    const { manifest } = await buildEngine({ model: dynamic, outputDirectory: fresh(), precision: 'f32' });
    expect(manifest).toMatchObject({ maxInputLen: 80, maxSeqLen: 80 });
  });

  it('refuses precisions that it cannot write', async () => {
    for (const precision of ['int3', 'q8', 'f64', '']) {
      const built = buildEngine({ model, outputDirectory: fresh(), precision });
      await expect(built).rejects.toThrow(
        `"${precision}" is not supported; supported: auto, f32, bf16, int8, int4`,
      );
    }
  });
});

describe('openEngine', () => {
  const changed = async (change: (manifest: Record<string, unknown>) => void) => {
    const { directory } = await buildEngine({ model, outputDirectory: fresh(), precision: 'f32' });
    const file = join(directory, 'engine.json');
    const manifest = JSON.parse(readFileSync(file, 'utf8')) as Record<string, unknown>;
    change(manifest);
    writeFileSync(file, JSON.stringify(manifest));
    return directory;
  };
  const wrong: [string, (manifest: Record<string, unknown>) => void, RegExp][] = [
    [
      'of another version',
      (m) => {
        m.formatVersion = FORMAT_VERSIONS.at(-1)! + 1;
      },
      /format version 5, expected 2 to 4; build the engine again/,
    ],
    [
      'of an unknown precision',
      (m) => {
        m.precision = 'int3';
      },
      /precision is "int3"; on every instruction set this version runs f32, bf16, int8, int4, stored\./,
    ],
    [
      'without a precision',
      (m) => {
        delete m.outputPrecision;
      },
      /not a complete engine\.json/,
    ],
    [
      'without tensors',
      (m) => {
        m.tensors = [];
      },
      /not those of the network/,
    ],
    [
      'with a moved tensor',
      (m) => {
        (m.tensors as { offset: number }[])[2]!.offset += 64;
      },
      /not those of the network/,
    ],
    [
      'of an unknown architecture',
      (m) => {
        (m.config as { architecture: string }).architecture = 'x';
      },
      /"x" is not known/,
    ],
    [
      'of an encoder as an earlier version described it',
      (m) => {
        (m.config as { encoder: unknown }).encoder = { tokenTypes: 2, head: { kind: 'embedding' } };
      },
      /an earlier version built this encoder, .*; build it again by skein build \S+ -o \S+ \(/,
    ],
    [
      'without a config',
      (m) => {
        m.config = null;
      },
      /engine/,
    ],
    [
      'of more layers than memory could plan',
      (m) => {
        (m.config as { numLayers: number }).numLayers = 1e12;
      },
      /1000000000000 layers, but only \d+ tensors/,
    ],
    [
      'of another size',
      (m) => {
        m.weightsByteLength = 64;
      },
      /not those of the network/,
    ],
  ];
  for (const [what, change, message] of wrong) {
    it(`refuses an engine ${what}`, async () => {
      const directory = await changed(change);
      expect(() => openEngine(directory)).toThrow(EngineError);
      expect(() => openEngine(directory)).toThrow(message);
    });
  }

  it('refuses missing, truncated and damaged files', async () => {
    const { directory, weightsFile, manifest } = await buildEngine({
      model,
      outputDirectory: fresh(),
      precision: 'f32',
    });
    // Cutting off a mapped file would kill the processes that have it mapped.
    expect(statSync(weightsFile).mode & 0o777).toBe(0o444);
    chmodSync(weightsFile, 0o644);
    truncateSync(weightsFile, 100);
    expect(() => openEngine(directory)).toThrow(
      `should be ${manifest.weightsByteLength} bytes long, found 100 bytes`,
    );
    rmSync(weightsFile);
    expect(() => openEngine(directory)).toThrow(/found no such file/);
    writeFileSync(join(directory, 'engine.json'), '{');
    expect(() => openEngine(directory)).toThrow(/cannot be read/);
    writeFileSync(join(directory, 'engine.json'), 'null');
    expect(() => openEngine(directory)).toThrow(EngineError);
    const isModel = `${model} is a model, not an engine directory; skein build ${model} -o ENGINE makes one`;
    expect(() => openEngine(model)).toThrow(isModel);
    expect(() => openEngine(`${model}/none.gguf`)).toThrow('none.gguf is a model, not an engine directory');
    rmSync(join(directory, 'engine.json'));
    expect(() => openEngine(directory)).toThrow(/is this an engine directory/);
    const tokenless = await changed(() => {});
    rmSync(join(tokenless, 'tokenizer.json'));
    expect(() => openEngine(tokenless)).toThrow(/tokenizer\.json is missing/);
  });
});
