import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { defaultThreads } from '../../../base/topology.js';
import { listOf } from '../../compare/flags.js';
import { perplexity, type Quality, qualityOf } from '../../quality/divergence.js';
import { LlamaLibrary } from '../../quality/llama-logits.js';
import { skeinLogits } from '../../quality/skein-logits.js';
import { textOf } from '../../quality/windows.js';
import { type Cell, markdownTable } from '../../support/markdown-table.js';
import { defineBench } from '../bench.js';

const FLAGS = {
  model: { argument: 'FILE', default: '', help: 'the GGUF that all files are made of' },
  llama: { argument: 'DIR', default: '', help: 'folder of libllama and libggml' },
  types: {
    argument: 'LIST',
    default: 'BF16,Q5_0,Q4_K_M,IQ4_XS',
    help: "types of the files, by llama.cpp's names (default BF16,Q5_0,Q4_K_M,IQ4_XS)",
  },
  text: { argument: 'FILE', default: '', help: 'the text (default: the LICENSE)' },
  python: { argument: 'PATH', default: 'python3', help: 'a Python 3 (default: python3)' },
} as const;

const HEAD: readonly Cell[] = [
  'file',
  'engine',
  'perplexity',
  'KL divergence, mean',
  '99th percentile',
  'greatest',
  'same most probable token',
];

/**
 * Quality of one and the same quantised file in Skein and in llama.cpp, against the numbers of the file that it was made of: f32,
 * computed by Skein with a cache in f32. What the types lose is in both; what an engine adds by rounding activations, keys and values
 * is what their lines differ in.
 */
export const bench = defineBench({
  flags: FLAGS,
  document: 'docs/lab/precision.md',
  sections: ['quality'],
  async run({ model, llama, types, text, python }, { progress, report }) {
    if (model === '' || llama === '') throw new Error('quality: --model FILE and --llama DIR are needed.');
    const library = new LlamaLibrary(llama, python);
    const folder = mkdtempSync(join(tmpdir(), 'skein-quality-'));
    try {
      const reference = await skeinLogits(model, 'f32', textOf(text), folder);
      const { windows } = reference;
      const rows: Cell[][] = [];
      for (const type of listOf(types)) {
        const file = join(folder, `${type}.gguf`);
        library.quantize(model, file, type);
        progress(`${type}: skein`);
        const ours = await skeinLogits(file, 'auto', windows, folder);
        rows.push(rowOf(type, 'skein', qualityOf(windows, reference.logits, ours.logits)));
        progress(`${type}: llama.cpp`);
        const theirs = library.logits(file, windows, defaultThreads(), folder);
        rows.push(rowOf('', 'llama.cpp', qualityOf(windows, reference.logits, theirs)));
        rmSync(file);
      }
      const positions = reference.logits.flat().length;
      report({
        section: 'quality',
        conditions: `files made of ${basename(model)}; ${positions} positions; f32 has perplexity ${perplexity(windows, reference.logits).toFixed(3)}`,
        lines: [markdownTable(HEAD, rows, 2)],
      });
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  },
});

function rowOf(file: string, engine: string, quality: Quality): Cell[] {
  const { mean, percentile99, greatest, same } = quality;
  const divergences = [mean, percentile99, greatest].map((value) => value.toExponential(1));
  return [file, engine, quality.perplexity.toFixed(3), ...divergences, `${(100 * same).toFixed(1)} %`];
}
