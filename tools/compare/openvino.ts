import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { oneDnnEnvironment } from './held-to-avx2.js';
import type { Peer, Rates } from './peer.js';
import { medianRates, runsOf } from './runs.js';
import type { Shape } from './shapes.js';

/** Weight formats of OpenVINO that are measured, as optimum-cli names them; its fp16 computes in f32 on most CPUs. */
export const OPENVINO_FORMATS = ['fp16', 'int8'];

const PACKAGES = 'openvino-genai optimum-intel openvino-tokenizers nncf torch transformers accelerate gguf';
const TO_HUGGING_FACE = `
import sys, torch
from transformers import AutoModelForCausalLM, AutoTokenizer
folder, gguf, target = sys.argv[1:]
AutoModelForCausalLM.from_pretrained(folder, gguf_file=gguf, dtype=torch.float32).save_pretrained(target)
AutoTokenizer.from_pretrained(folder).save_pretrained(target)
`;

/**
 * OpenVINO GenAI's ContinuousBatchingPipeline, all outside this repository:
 *
 *   DIR/openvino/venv           Python with openvino-genai and the exporter
 *   DIR/openvino/hf             the GGUF as a Hugging Face folder in f32
 *   DIR/openvino/fp16, int8     exported from it
 */
export class OpenVino implements Peer {
  readonly #directory: string;

  constructor(directory: string) {
    this.#directory = join(directory, 'openvino');
    if (existsSync(this.#program('python'))) return;
    mkdirSync(this.#directory, { recursive: true });
    run('python3', '-m', 'venv', join(this.#directory, 'venv'));
    run(this.#program('python'), '-m', 'pip', 'install', '-q', ...PACKAGES.split(' '));
  }

  version(): string {
    const print = 'from importlib.metadata import version; print(version("openvino-genai"))';
    return execFileSync(this.#program('python'), ['-c', print], { encoding: 'utf8' }).trim();
  }

  weightsFile(model: string, format: string): string {
    return join(this.#exported(model, format), 'openvino_model.bin');
  }

  measure(model: string, format: string, shape: Shape, threads: number): Rates {
    const script = fileURLToPath(new URL('openvino_bench.py', import.meta.url));
    const { sequences, promptTokens, generate } = shape;
    const args = [script, this.#exported(model, format), '--sequences', `${sequences}`];
    args.push('--prompt', `${promptTokens}`, '--generate', `${generate}`, '--threads', `${threads}`);
    args.push('--runs', `${runsOf(shape)}`);
    const output = execFileSync(this.#program('python'), args, {
      encoding: 'utf8',
      maxBuffer: 1 << 26,
      env: oneDnnEnvironment(),
    });
    const lines = output.split('\n').filter((text) => text.startsWith('{'));
    if (lines.length === 0) throw new Error(`openvino_bench.py: expected a line of JSON, found '${output}'.`);
    const { prefillPerSecond, generationPerSecond } = medianRates(
      lines.map((line) => JSON.parse(line) as Rates),
    );
    return { prefillPerSecond, generationPerSecond };
  }

  /** Folder of `model` (a GGUF with its tokenizer.json next to it) in `format`; made once. */
  #exported(model: string, format: string): string {
    const target = join(this.#directory, format);
    if (existsSync(join(target, 'openvino_model.xml'))) return target;
    const source = join(this.#directory, 'hf');
    if (!existsSync(source)) {
      run(this.#program('python'), '-c', TO_HUGGING_FACE, dirname(model), basename(model), source);
    }
    const task = ['--task', 'text-generation-with-past', '--weight-format', format];
    run(this.#program('optimum-cli'), 'export', 'openvino', '-m', source, ...task, target);
    return target;
  }

  #program(name: string): string {
    return join(this.#directory, 'venv', 'bin', name);
  }
}

function run(command: string, ...args: string[]): void {
  const env = { ...process.env, HF_HUB_OFFLINE: '1' };
  execFileSync(command, args, { env, stdio: ['ignore', 'inherit', 'inherit'] });
}
