/**
 * The sides of Node.js: transformers.js, and onnxruntime-node by itself, both on the ONNX file.
 *
 *     node peers.mjs MODEL_DIR transformers.js|onnxruntime-node f32|int8 THREADS NODE_DIR
 *
 * NODE_DIR has node_modules with @huggingface/transformers. Lines of stdin and stdout are those of peers.py. onnxruntime-node sorts
 * the texts of a call by length and pads batches of 32; transformers.js gets batches of 32 as they come, as its users give them.
 */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';

const [model, side, precision, threadsText, nodeFolder] = process.argv.slice(2);
const threads = Number(threadsText);
const BATCH = 32;
const modules = join(nodeFolder, 'node_modules');
const { env, AutoTokenizer, pipeline } = await import(
  pathToFileURL(join(modules, '@huggingface/transformers/dist/transformers.node.mjs')).href
);
env.allowRemoteModels = false;
env.localModelPath = dirname(model);

const modes = JSON.parse(readFileSync(join(model, '1_Pooling/config.json'), 'utf8'));
const pooling = modes.pooling_mode_cls_token ? 'cls' : modes.pooling_mode_lasttoken ? 'last_token' : 'mean';
const versionOf = (name) => JSON.parse(readFileSync(join(modules, name, 'package.json'), 'utf8')).version;

async function transformersJs() {
  const extract = await pipeline('feature-extraction', basename(model), {
    device: 'cpu',
    dtype: precision === 'int8' ? 'q8' : 'fp32',
    session_options: { intraOpNumThreads: threads },
  });
  const embed = async (texts) => {
    const rows = [];
    for (let begin = 0; begin < texts.length; begin += BATCH) {
      const output = await extract(texts.slice(begin, begin + BATCH), { pooling, normalize: true });
      rows.push(...output.tolist());
    }
    return rows;
  };
  return { version: `transformers.js ${versionOf('@huggingface/transformers')}`, embed };
}

async function onnxRuntime() {
  const { InferenceSession, Tensor } = createRequire(join(modules, 'x.js'))('onnxruntime-node');
  const tokenizer = await AutoTokenizer.from_pretrained(basename(model));
  tokenizer.padding_side = 'right';
  const file = precision === 'int8' ? 'model_quantized.onnx' : 'model.onnx';
  const session = await InferenceSession.create(join(model, 'onnx', file), { intraOpNumThreads: threads });
  const embed = async (texts) => {
    const order = texts.map((_, i) => i).sort((a, b) => texts[b].length - texts[a].length);
    const rows = new Array(texts.length);
    for (let begin = 0; begin < order.length; begin += BATCH) {
      const chosen = order.slice(begin, begin + BATCH);
      const inputs = tokenizer(
        chosen.map((i) => texts[i]),
        { padding: true },
      );
      const { attention_mask: mask } = inputs;
      const [count, length] = mask.dims;
      const feeds = {};
      for (const name of session.inputNames) {
        const data = inputs[name]?.data ?? new BigInt64Array(count * length);
        feeds[name] = new Tensor('int64', data, [count, length]);
      }
      const output = await session.run(feeds);
      const states = output[session.outputNames[0]];
      for (const [row, i] of chosen.entries()) rows[i] = pooled(states, mask.data, row, length);
    }
    return rows;
  };
  return { version: `onnxruntime-node ${versionOf('onnxruntime-node')}`, embed };
}

/** The embedding of a row of a padded batch, of length 1. */
function pooled({ data, dims }, mask, row, length) {
  const width = dims[2];
  let tokens = 0;
  while (tokens < length && mask[row * length + tokens] === 1n) tokens++;
  const result = new Float32Array(width);
  const [first, end] = pooling === 'mean' ? [0, tokens] : pooling === 'cls' ? [0, 1] : [tokens - 1, tokens];
  for (let t = first; t < end; t++) {
    const begin = (row * length + t) * width;
    for (let i = 0; i < width; i++) result[i] += data[begin + i];
  }
  let squares = 0;
  for (const value of result) squares += value * value;
  const scale = 1 / Math.sqrt(squares);
  return result.map((value) => value * scale);
}

const { version, embed } = await (side === 'transformers.js' ? transformersJs() : onnxRuntime());
console.log(JSON.stringify({ version }));
for await (const line of createInterface({ input: process.stdin })) {
  const { calls } = JSON.parse(line);
  let first = null;
  const start = performance.now();
  for (const texts of calls) {
    const rows = await embed(texts);
    first ??= [...rows[0]];
  }
  console.log(JSON.stringify({ seconds: (performance.now() - start) / 1000, first }));
}
process.exit(0);
