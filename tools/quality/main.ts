/**
 * Loss of quality by each weight format and each type of the KV cache, against f32 weights of the same checkpoint and a
 * cache in f32:
 *
 *   npx tsx tools/quality/main.ts MODEL [TEXT_FILE] [bf16,int8,int4,int4+bf16,bf16/int8,int4/int8,int4@amx]
 *
 * Prints perplexity, the KL divergence of the distributions over the whole vocabulary, and how often the most
 * probable token is the same, over every position of a fixed text: of the file, or else of the LICENSE next
 * to this. After the plus stands the format of embedding and output layer, after the slash that of the cache
 * (default: bf16), after the at sign the instruction set (default: the best that runs without being named).
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { perplexity, qualityOf } from './divergence.js';
import { skeinLogits } from './skein-logits.js';
import { textOf } from './windows.js';

const [model, textFile, formats = 'bf16,int8,int4,int4+bf16,bf16/int8,int4/int8'] = process.argv.slice(2);
if (!model) throw new Error('quality: the first argument should be a model: a folder or a GGUF file');
const folder = mkdtempSync(join(tmpdir(), 'skein-quality-'));
try {
  const { windows, logits } = await skeinLogits(model, 'f32', textOf(textFile), folder);
  const positions = logits.flat().length;
  console.log(`${positions} positions; f32: perplexity ${perplexity(windows, logits).toFixed(4)}`);
  for (const format of formats.split(',')) {
    const found = await skeinLogits(model, format, windows, folder);
    const quality = qualityOf(windows, logits, found.logits);
    console.log(
      `${format}: perplexity ${quality.perplexity.toFixed(4)}, KL divergence mean ${quality.mean.toExponential(2)}, ` +
        `99th percentile ${quality.percentile99.toExponential(2)}, greatest ${quality.greatest.toExponential(2)}; ` +
        `same token ${(100 * quality.same).toFixed(1)} %`,
    );
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
