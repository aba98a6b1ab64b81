import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { builtVersion } from './built-version.js';
import { ggmlBuild } from './held-to-avx2.js';
import { LlamaCpp } from './llama-cpp.js';
import type { Rates, ServingPeer } from './peer.js';
import { medianRates, runsOf } from './runs.js';
import type { Shape } from './shapes.js';

/** Weight types of ik_llama.cpp that are measured: those of llama.cpp that are no larger than 8 bits. */
export const IK_TYPES = ['Q8_0', 'Q4_1', 'Q4_0'];

const SOURCE = 'https://github.com/ikawrakow/ik_llama.cpp';
const COMMIT = '8337e4cd3861406fc04e0854b1409cd1b027fbc9';

/**
 * The fork of llama.cpp with faster kernels for CPUs, all outside this repository:
 *
 *   DIR/ik_llama.cpp            the source at COMMIT
 *   DIR/ik_llama.cpp/build/bin  llama-batched-bench, llama-server; build-avx2 where all sides are held to AVX2
 *
 * It reads llama.cpp's files, which llama.cpp makes.
 */
export class IkLlamaCpp implements ServingPeer {
  readonly #directory: string;

  constructor(directory: string) {
    this.#directory = directory;
    if (!existsSync(this.#program('llama-batched-bench'))) build(directory);
  }

  version(): string {
    return builtVersion(join(this.#directory, 'ik_llama.cpp'));
  }

  weightsFile(model: string, type: string): string {
    return model.endsWith(`.${type}.gguf`) ? model : new LlamaCpp(this.#directory).weightsFile(model, type);
  }

  /**
   * llama-batched-bench with blocks of 512 tokens a forward and flash attention. Of several sequences one prompt is computed, and
   * all read its keys and values where they lie: this cache has no buffer for each sequence.
   */
  measure(model: string, type: string, shape: Shape, threads: number): Rates {
    const { sequences, promptTokens, generate } = shape;
    const context = sequences * (promptTokens + generate + 1);
    const args = ['-m', this.weightsFile(model, type), '-c', `${context}`, '-b', '2048', '-ub', '512'];
    const prompts = Array(runsOf(shape)).fill(promptTokens).join();
    args.push(
      '-npp',
      prompts,
      '-ntg',
      `${generate}`,
      '-npl',
      `${sequences}`,
      '-t',
      `${threads}`,
      '-fa',
      'on',
    );
    if (sequences > 1) args.push('-pps');
    const { stdout, stderr } = spawnSync(this.#program('llama-batched-bench'), args, {
      encoding: 'utf8',
      maxBuffer: 1 << 26,
      // It writes a log into the folder that it runs in.
      cwd: tmpdir(),
    });
    return parseBatchedTable(`${stdout}\n${stderr}`, shape);
  }

  /**
   * llama-server; the store of earlier prompts is off, as with llama.cpp's. It renders templates as they are (--jinja), as llama.cpp's
   * does by default; else it knows only those of common models.
   */
  serve(
    model: string,
    type: string,
    port: number,
    threads: number,
    slots: number,
    slotTokens: number,
  ): ChildProcess {
    const args = ['-m', this.weightsFile(model, type), '--port', `${port}`, '-t', `${threads}`];
    args.push('-np', `${slots}`, '-c', `${slots * slotTokens}`, '-b', '2048', '-ub', '512');
    args.push('--cache-ram', '0', '--jinja');
    return spawn(this.#program('llama-server'), args, { stdio: 'ignore', cwd: tmpdir() });
  }

  #program(name: string): string {
    return join(this.#directory, 'ik_llama.cpp', ggmlBuild().folder, 'bin', name);
  }
}

/**
 * The rates of `shape` in the table that this llama-batched-bench prints. @throws where it has left the shape out.
 *
 *   |    PP |     TG |    B |   N_KV |   T_PP s | S_PP t/s |   T_TG s | S_TG t/s |      T s |    S t/s |
 */
export function parseBatchedTable(output: string, { sequences, promptTokens }: Shape): Rates {
  const rows = output
    .split('\n')
    .filter((line) => /^\|\s*\d/.test(line))
    .map((line) => line.split('|').slice(1, -1).map(Number));
  const runs = rows.filter(([prompt, , batch]) => prompt === promptTokens && batch === sequences);
  if (runs.length === 0)
    throw new Error(
      `llama-batched-bench of ik_llama.cpp: expected a row for ${sequences} sequences of ${promptTokens} tokens, found ${rows.length} others.`,
    );
  return medianRates(runs.map((row) => ({ prefillPerSecond: row[5]!, generationPerSecond: row[7]! })));
}

/** Fetches the source by git and builds it: about half an hour on two cores, for its kernels are many. */
function build(directory: string): void {
  mkdirSync(directory, { recursive: true });
  const run = (command: string, ...args: string[]) =>
    execFileSync(command, args, { cwd: directory, stdio: ['ignore', 'inherit', 'inherit'] });
  const inSource = ['-C', 'ik_llama.cpp'];
  if (!existsSync(join(directory, 'ik_llama.cpp'))) run('git', 'init', '-q', 'ik_llama.cpp');
  run('git', ...inSource, 'fetch', '-q', '--depth', '1', SOURCE, COMMIT);
  run('git', ...inSource, 'checkout', '-q', 'FETCH_HEAD');
  const { folder, options } = ggmlBuild();
  const others = ['-DCMAKE_BUILD_TYPE=Release', '-DLLAMA_CURL=OFF', '-DBUILD_SHARED_LIBS=OFF'];
  run('cmake', '-S', 'ik_llama.cpp', '-B', `ik_llama.cpp/${folder}`, ...options, ...others);
  const targets = ['llama-batched-bench', 'llama-server'];
  run('cmake', '--build', `ik_llama.cpp/${folder}`, '-j', '2', '--target', ...targets);
}
