import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import { builtVersion } from './built-version.js';
import { ggmlBuild } from './held-to-avx2.js';
import type { Rates, ServingPeer } from './peer.js';
import { medianRates, runsOf } from './runs.js';
import type { Shape } from './shapes.js';

/** Weight types of llama.cpp that are measured, as llama-quantize names them. */
export const LLAMA_TYPES = ['F32', 'BF16', 'Q8_0', 'Q4_1', 'Q4_0'];
/** Prompt tokens from which on flash attention is tried both ways; below, the two differ by a few per cent, on is faster. */
const FLASH_OFF_MIN = 1024;

const PACKAGE = 'node-llama-cpp';
const BUNDLE = 'package/llama/gitRelease.bundle';

/**
 * llama.cpp's programs, all outside this repository:
 *
 *   DIR/llama.cpp               the source: cloned from the bundle in the npm package node-llama-cpp
 *   DIR/llama.cpp/build/bin     llama-quantize, llama-batched-bench; build-avx2 where all sides are held to AVX2
 *   DIR/gguf                    the model in the measured weight types
 */
export class LlamaCpp implements ServingPeer {
  readonly #directory: string;

  readonly #flashOffMax: number;
  readonly #adapter: string | null;

  /**
   * @param flashOffMax longest prompt that is computed without flash attention too; a prompt of 8k takes it minutes
   * @param adapter a GGUF file with a LoRA adapter, which all sequences have
   */
  constructor(directory: string, flashOffMax = 0, adapter: string | null = null) {
    this.#directory = directory;
    this.#flashOffMax = flashOffMax;
    this.#adapter = adapter;
    if (!existsSync(this.#program('llama-batched-bench'))) build(directory);
  }

  version(): string {
    return builtVersion(join(this.#directory, 'llama.cpp'));
  }

  weightsFile(model: string, type: string): string {
    // The file itself where it has this type: to quantise it once more would change it.
    if (model.endsWith(`.${type}.gguf`)) return model;
    const target = join(this.#directory, 'gguf', `${basename(model, '.gguf')}.as-${type}.gguf`);
    if (existsSync(target)) return target;
    mkdirSync(join(this.#directory, 'gguf'), { recursive: true });
    const args = ['--allow-requantize', model, target, type];
    execFileSync(this.#program('llama-quantize'), args, { stdio: 'ignore' });
    return target;
  }

  /**
   * llama-batched-bench, with blocks of 512 tokens a forward. Of several sequences one prompt is computed and copied for
   * each, so that its prefill is that of one prompt. With long contexts its flash attention makes prompts faster
   * and generation slower on some CPUs: both are run, and each rate is the better one.
   */
  measure(model: string, type: string, shape: Shape, threads: number): Rates {
    const all = this.#flashSettings(shape).map((flash) => this.#run(model, type, shape, threads, flash));
    return {
      prefillPerSecond: Math.max(...all.map((rates) => rates.prefillPerSecond)),
      generationPerSecond: Math.max(...all.map((rates) => rates.generationPerSecond)),
    };
  }

  #flashSettings({ promptTokens }: Shape): string[] {
    return promptTokens < FLASH_OFF_MIN || promptTokens > this.#flashOffMax ? ['on'] : ['on', 'off'];
  }

  #run(model: string, type: string, shape: Shape, threads: number, flash: string): Rates {
    const { sequences, promptTokens, generate } = shape;
    const context = sequences * (promptTokens + generate + 1);
    const args = ['-m', this.weightsFile(model, type), '-c', `${context}`, '-b', '2048', '-ub', '512'];
    args.push(
      '-npp',
      Array(runsOf(shape)).fill(promptTokens).join(),
      '-ntg',
      `${generate}`,
      '-npl',
      `${sequences}`,
    );
    args.push('-t', `${threads}`, '-fa', flash, '--output-format', 'jsonl');
    // The prompt is computed once and copied: without a unified cache every sequence has its own buffer.
    if (sequences > 1) args.push('-pps', shape.shared ? '--kv-unified' : '--no-kv-unified');
    if (this.#adapter !== null) args.push('--lora', this.#adapter);
    const output = execFileSync(this.#program('llama-batched-bench'), args, {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
      maxBuffer: 1 << 26,
    });
    return parseBatchedBench(output, shape);
  }

  /**
   * llama-server with a slot of `slotTokens` tokens for each of `slots` clients. The store of earlier prompts is off: no
   * two prompts here are alike, so that it would only cost time. `mmproj`: the GGUF of its tower.
   */
  serve(
    model: string,
    type: string,
    port: number,
    threads: number,
    slots: number,
    slotTokens: number,
    mmproj?: string,
  ): ChildProcess {
    const args = ['-m', this.weightsFile(model, type), '--port', `${port}`, '-t', `${threads}`];
    args.push('-np', `${slots}`, '-c', `${slots * slotTokens}`, '-b', '2048', '-ub', '512');
    args.push('--cache-ram', '0', '--no-webui');
    if (mmproj !== undefined) args.push('--mmproj', mmproj);
    return spawn(this.#program('llama-server'), args, { stdio: 'ignore' });
  }

  #program(name: string): string {
    return join(this.#directory, 'llama.cpp', ggmlBuild().folder, 'bin', name);
  }
}

/** The rates of `shape` in the JSON lines that llama-batched-bench prints. @throws where it has left the shape out. */
export function parseBatchedBench(output: string, { sequences, promptTokens }: Shape): Rates {
  const lines = output.split('\n').filter((line) => line.startsWith('{'));
  const results = lines.map((line) => JSON.parse(line) as BatchedBench);
  const runs = results.filter(({ pl, pp }) => pl === sequences && pp === promptTokens);
  if (runs.length === 0)
    throw new Error(
      `llama-batched-bench: expected a line for ${sequences} sequences of ${promptTokens} tokens, found ${lines.length} others.`,
    );
  return medianRates(
    runs.map(({ speed_pp, speed_tg }) => ({ prefillPerSecond: speed_pp, generationPerSecond: speed_tg })),
  );
}

interface BatchedBench {
  pl: number;
  pp: number;
  speed_pp: number;
  speed_tg: number;
}

/** Fetches the source by npm and builds it: about ten minutes on two cores. */
function build(directory: string): void {
  mkdirSync(directory, { recursive: true });
  const run = (command: string, ...args: string[]) =>
    execFileSync(command, args, { cwd: directory, stdio: ['ignore', 'inherit', 'inherit'] });
  if (!existsSync(join(directory, 'llama.cpp'))) {
    run('npm', 'pack', PACKAGE);
    const archive = readdirSync(directory).find((name) => name.startsWith(PACKAGE) && name.endsWith('.tgz'))!;
    run('tar', 'xzf', archive, BUNDLE);
    run('git', 'clone', BUNDLE, 'llama.cpp');
  }
  const { folder, options } = ggmlBuild();
  run('cmake', '-S', 'llama.cpp', '-B', `llama.cpp/${folder}`, ...options, '-DLLAMA_CURL=OFF');
  const targets = ['llama-batched-bench', 'llama-quantize', 'llama-server'];
  run('cmake', '--build', `llama.cpp/${folder}`, '--config', 'Release', '-j', '2', '--target', ...targets);
}

/** The GGUF that `path` is or holds. @throws where there is none, or no path. */
export function ggufOf(path: string): string {
  if (path === '') throw new Error('Which model? Give --model PATH or set SKEIN_TEST_MODEL.');
  if (!statSync(path).isDirectory()) return path;
  const files = readdirSync(path).filter((name) => name.endsWith('.gguf'));
  if (files.length !== 1)
    throw new Error(`${path} holds ${files.length} GGUF files; the comparison needs one.`);
  return join(path, files[0]!);
}
