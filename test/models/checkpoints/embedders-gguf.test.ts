import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { loadEncoder } from '../../../engine/encoder/load-encoder.js';
import { planNetwork } from '../../../models/architectures/index.js';
import { openCheckpoint } from '../../../models/checkpoints/open-checkpoint.js';
import type { EncoderHead } from '../../../models/encoder-config.js';
import { EncoderCodec } from '../../../src/encoding/encoder-codec.js';
import { TestEngines } from '../../../tools/support/test-engine.js';
import { temporaryFolder } from '../../support/fresh-folders.js';
import { type MadeEmbedder, madeEmbedder, writeMadeEmbedder } from '../../support/made-embedders.js';
import { type MadeGguf, writeMadeGguf } from '../../support/made-models.js';

const FILE = new URL('../../goldens/embedders-gguf.json', import.meta.url);
const MADE_GGUFS = (JSON.parse(readFileSync(FILE, 'utf8')) as { models: MadeGguf[] }).models;

const folder = temporaryFolder('skein-embedders-gguf');
const engines = new TestEngines();
afterAll(() => engines.remove());

/** The converter takes WordPiece for a BPE in a ModernBERT, and has a template of its own for scores by tokens. */
const OTHER_TOKENS = ['modernbert', 'modernbert-score', 'qwen3-reranker'];
/** The converter leaves out rows of its table of positions. */
const WITHOUT_PADDING = ['roberta-score'];
const WITHOUT_BIAS = ['nomic-embed-moe'];
const OTHER_WEIGHTS = [...WITHOUT_PADDING, ...WITHOUT_BIAS];
/** The bias that experts share, which the converter leaves out. */
const SHARED_BIAS = /\.mlp\.experts\.bias$/;
/** Tokenizers that put a token between two texts; the flags of a GGUF do so always. */
const PAIRS_APART = [
  'bert',
  'distilbert',
  'distilbert-score',
  'nomic-embed',
  'nomic-embed-moe',
  'roberta-score',
];
/** GGUF's numbers are f32, and a score's layers have one name for several families. */
const comparable = (value: unknown) => {
  const text = JSON.stringify(value, (_, item) => (typeof item === 'number' ? Math.fround(item) : item));
  return JSON.parse(text.replace(/"(?:pre_)?classifier(?:\.dense|\.out_proj)?(?=[."])/g, '"classifier'));
};

function fileOf(gguf: MadeGguf, changed: Partial<MadeGguf> = {}, name = gguf.name): string {
  const { tensors } = madeEmbedder(gguf.name);
  const sources = Object.entries(tensors).flatMap(([path, list]) =>
    list.map((tensor) => [`${path.replace('model.safetensors', '')}${tensor[0]}`, tensor] as const),
  );
  return writeMadeGguf(join(folder, `${name}.gguf`), new Map(sources), { ...gguf, ...changed });
}

/** The model with zeros for the bias that a GGUF lacks, which then are what it computes. */
function withoutSharedBias(made: MadeEmbedder): MadeEmbedder {
  const tensors = Object.entries(made.tensors).map(([path, list]) => [
    path,
    list.map(([name, shape, mean, spread]) => {
      const size = SHARED_BIAS.test(name) ? 0 : 1;
      return [name, shape, size * mean, size * spread] as const;
    }),
  ]);
  return { ...made, tensors: Object.fromEntries(tensors) };
}

async function rowsOf(directory: string): Promise<Float32Array> {
  const encoder = await loadEncoder(directory, { executor: 'native', threads: 1 });
  const sequences = [[5, 3, 60, 41], Array.from({ length: 70 }, (_, i) => 3 + ((i * 7) % 107))];
  const rows = encoder
    .encode(sequences.map((ids) => ({ tokenIds: Int32Array.from(ids), tokenTypes: null })))
    .slice(0, sequences.length * encoder.outputWidth);
  encoder.close();
  return rows;
}

/** What makes the rows: prompts and instructions are in no GGUF. */
function rowsBy(head: EncoderHead) {
  const { pooling, layers, kind } = head;
  return head.kind === 'score'
    ? { kind, pooling, layers }
    : { kind, pooling, layers, normalize: head.kind === 'embedding' && head.normalize };
}

describe.each(MADE_GGUFS)("$name as llama.cpp's converter writes it", (gguf) => {
  const file = fileOf(gguf);

  it('is the same network with the same weights, byte for byte, and takes the same tokens', async () => {
    const made = withoutSharedBias(madeEmbedder(gguf.name));
    const fromHub = await engines.get(writeMadeEmbedder(join(folder, made.name), made), 'f32');
    const fromGguf = await engines.get(file, 'f32');
    const [hub, own] = [fromHub.manifest.config, fromGguf.manifest.config];
    if (!OTHER_WEIGHTS.includes(gguf.name)) {
      expect(comparable(planNetwork(own))).toEqual(comparable(planNetwork(hub)));
      expect(readFileSync(fromGguf.weightsFile).equals(readFileSync(fromHub.weightsFile))).toBe(true);
    }
    expect(await rowsOf(fromGguf.directory)).toEqual(await rowsOf(fromHub.directory));
    // The converter knows for how many tokens nomic-embed v2 is trained, which its config.json does not say.
    expect(own.maxPositions).toBe(WITHOUT_BIAS.includes(gguf.name) ? 512 : hub.maxPositions);
    expect(own.encoder!.tokenTypes).toBe(hub.encoder!.tokenTypes);
    expect(comparable(rowsBy(own.encoder!.head))).toEqual(comparable(rowsBy(hub.encoder!.head)));
    if (OTHER_TOKENS.includes(gguf.name)) return;
    const encoded = [fromHub, fromGguf].map(async ({ directory, manifest }) => {
      const codec = await EncoderCodec.open(directory, manifest.config.encoder!);
      const limit = { maxSeqLen: own.maxPositions };
      const single = await codec.single(['the cat, Unbelievable!', ''], limit, 'input', String);
      const texts = PAIRS_APART.includes(gguf.name) ? [['the dog', 'sat on a mat'] as const] : [];
      const pairs = await codec.pairs(texts, limit, 'input', String);
      await codec.close();
      return [...single, ...pairs].map(({ tokenIds, tokenTypes }) => [[...tokenIds], [...tokenTypes!]]);
    });
    expect(await encoded[1]).toEqual(await encoded[0]);
  });
});

describe('an encoder of a GGUF', () => {
  const named = (name: string) => MADE_GGUFS.find((gguf) => gguf.name === name)!;

  it('is refused where its pooling is another one, or where a layer of its score is missing', () => {
    const bert = named('bert');
    const keys = bert.keys.map((key): (typeof bert.keys)[number] =>
      key[0] === 'bert.pooling_type' ? [key[0], key[1], 7] : key,
    );
    expect(() => openCheckpoint(fileOf(bert, { keys }, 'other-pooling'))).toThrow(
      /bert\.pooling_type should be 1 \(mean\), 2 \(first token\), 3 \(last token\) or 4 \(score\), found 7\.$/,
    );
    const roberta = named('roberta-score');
    const tensors = roberta.tensors.filter(([name]) => !/^cls\.(weight|bias)$/.test(name));
    expect(() => openCheckpoint(fileOf(roberta, { tensors }, 'no-pooler'))).toThrow(
      /no-pooler\.gguf: cls\.weight, the layer before the score, is missing: .* take the model's safetensors\.$/,
    );
  });

  it.each([
    ['moe_every_n_layers', 1, /nomic-bert-moe\.moe_every_n_layers should be .* found 1\.$/],
    ['expert_count', 0, /nomic-bert-moe\.expert_count should be .* found 0\.$/],
    ['expert_used_count', 5, /nomic-bert-moe\.expert_used_count should be .* found 5\.$/],
    ['expert_count', 3, /blk\.1\.ffn_\w+\.weight should have the shape \[3, /],
  ])('is refused where %s is %i', (key, value, message) => {
    const moe = named('nomic-embed-moe');
    const keys = moe.keys.map((one): (typeof moe.keys)[number] =>
      one[0] === `nomic-bert-moe.${key}` ? [one[0], one[1], value] : one,
    );
    expect(() => openCheckpoint(fileOf(moe, { keys }, `${key}-${value}`))).toThrow(message);
  });

  it('generates where a decoder has no pooling', () => {
    const qwen = named('qwen3-embedding');
    const keys = qwen.keys.filter(([key]) => key !== 'qwen3.pooling_type');
    expect(openCheckpoint(fileOf(qwen, { keys }, 'generates')).config.encoder).toBeUndefined();
  });
});
