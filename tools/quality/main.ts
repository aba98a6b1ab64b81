/**
 * Loss of quality by each weight format and each type of the KV cache, against f32 weights of the same checkpoint and a
 * cache in f32:
 *
 *   npx tsx tools/quality/main.ts MODEL [TEXT_FILE] [bf16,int8,int4,int4+bf16,bf16/int8,int4/int8]
 *
 * Prints perplexity, the KL divergence of the distributions over the whole vocabulary, and how often the most probable
 * token is the same, over every position of a fixed text: of the file, or else of the LICENSE beside this. After the plus
 * stands the format of embedding and output layer, after the slash that of the cache (default: bf16).
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { defaultThreads } from '../../base/topology.js';
import { buildEngine } from '../../engine/building/builder.js';
import type { EnginePrecision, OutputPrecision } from '../../engine/executors/executor.js';
import type { KvDtype } from '../../kvcache/kv-dtype.js';
import { readTokenizerFiles, Tokenizer } from '../../models/tokenizer/index.js';
import { klDivergence, logSumExp } from '../support/goldens.js';
import { argmax, SequenceDriver } from '../support/sequence-driver.js';
import { openExecutor } from '../support/test-engine.js';

const WINDOW = 256;
const WINDOWS_MAX = 4;

const [model, textFile, formats = 'bf16,int8,int4,int4+bf16,bf16/int8,int4/int8'] = process.argv.slice(2);
if (!model) throw new Error('quality: the first argument should be a model: a folder or a GGUF file');
const text = readFileSync(textFile || fileURLToPath(new URL('../../LICENSE', import.meta.url)), 'utf8');
const folder = mkdtempSync(join(tmpdir(), 'skein-quality-'));

/** The logits of every position but the last, window by window: [window][position][vocabulary]. */
async function logitsOf(format: string, windows: number[][] | null) {
  const [weights, kvDtype = weights === 'f32' ? 'f32' : 'bf16'] = format.split('/') as [string, KvDtype?];
  const [precision, outputPrecision = 'auto'] = weights!.split('+') as [EnginePrecision, OutputPrecision?];
  const outputDirectory = join(folder, format.replace('/', '-'));
  const engine = await buildEngine({ model: model!, outputDirectory, precision, outputPrecision });
  const tokens = windows ?? windowsOf(new Tokenizer(await readTokenizerFiles(outputDirectory)));
  const executor = openExecutor(engine, {
    threads: defaultThreads(),
    maxNumTokens: WINDOW,
    maxLogitRows: WINDOW,
    maxSeqLen: WINDOW,
    kvDtype,
  });
  const driver = new SequenceDriver(executor, engine.manifest.config);
  const logits = tokens.map((window) => {
    driver.begin(WINDOW);
    return driver.append(window, [...window.keys()].slice(0, -1));
  });
  executor.close();
  rmSync(outputDirectory, { recursive: true, force: true });
  return { tokens, logits };
}

function windowsOf(tokenizer: Tokenizer): number[][] {
  const ids = [...tokenizer.encode(text)];
  const count = Math.min(WINDOWS_MAX, Math.floor(ids.length / WINDOW));
  if (count === 0)
    throw new Error(`quality: the text has ${ids.length} tokens, at least ${WINDOW} are needed`);
  return Array.from({ length: count }, (_, i) => ids.slice(i * WINDOW, (i + 1) * WINDOW));
}

function perplexity({ tokens, logits }: Awaited<ReturnType<typeof logitsOf>>): number {
  const losses = logits.flatMap((window, w) =>
    window.map((row, position) => logSumExp(row) - row[tokens[w]![position + 1]!]!),
  );
  return Math.exp(losses.reduce((sum, loss) => sum + loss, 0) / losses.length);
}

try {
  const reference = await logitsOf('f32', null);
  const positions = reference.logits.flat().length;
  console.log(`${positions} positions; f32: perplexity ${perplexity(reference).toFixed(4)}`);
  for (const format of formats.split(',')) {
    const found = await logitsOf(format, reference.tokens);
    const rows = found.logits.flat();
    const exact = reference.logits.flat();
    const divergences = rows.map((row, i) => klDivergence(exact[i]!, row)).sort((a, b) => a - b);
    const mean = divergences.reduce((sum, value) => sum + value, 0) / divergences.length;
    const same = rows.filter((row, i) => argmax(row) === argmax(exact[i]!)).length;
    console.log(
      `${format}: perplexity ${perplexity(found).toFixed(4)}, KL divergence mean ${mean.toExponential(2)}, ` +
        `99th percentile ${divergences[Math.floor(divergences.length * 0.99)]!.toExponential(2)}, greatest ` +
        `${divergences.at(-1)!.toExponential(2)}; same token ${((100 * same) / positions).toFixed(1)} %`,
    );
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
