import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { Peer, PeerShape, Rates } from './peer.js';

/** Weight types of llama.cpp that are measured, as llama-quantize names them. */
export const LLAMA_TYPES = ['F32', 'BF16', 'Q8_0', 'Q4_0'];

const PACKAGE = 'node-llama-cpp';
const BUNDLE = 'package/llama/gitRelease.bundle';

/**
 * llama.cpp's programs, all outside this repository:
 *
 *   DIR/llama.cpp               the source: cloned from the bundle in the npm package node-llama-cpp
 *   DIR/llama.cpp/build/bin     llama-quantize, llama-batched-bench
 *   DIR/gguf                    the model in the measured weight types
 */
export class LlamaCpp implements Peer {
  readonly name = 'llama.cpp';
  readonly #directory: string;

  constructor(directory: string) {
    this.#directory = directory;
    if (!existsSync(this.#program('llama-batched-bench'))) build(directory);
  }

  /** Commit and build type, for the report. */
  version(): string {
    const source = join(this.#directory, 'llama.cpp');
    return execFileSync('git', ['-C', source, 'log', '-1', '--format=%h %cs'], { encoding: 'utf8' }).trim();
  }

  /** Path of `model` (a GGUF) with its matrices in `type`; made once. */
  #quantised(model: string, type: string): string {
    const target = join(this.#directory, 'gguf', `${basename(model, '.gguf')}.as-${type}.gguf`);
    if (existsSync(target)) return target;
    mkdirSync(join(this.#directory, 'gguf'), { recursive: true });
    const args = ['--allow-requantize', model, target, type];
    execFileSync(this.#program('llama-quantize'), args, { stdio: 'ignore' });
    return target;
  }

  /** llama-batched-bench, with blocks of 512 tokens a forward. */
  measure(model: string, weights: string, shape: PeerShape): Rates[] {
    const { sequences, promptTokens, generate, threads } = shape;
    const context = Math.max(...sequences) * (promptTokens + generate) + 64;
    const args = ['-m', this.#quantised(model, weights), '-c', `${context}`, '-b', '2048', '-ub', '512'];
    args.push('-npp', `${promptTokens}`, '-ntg', `${generate}`, '-npl', sequences.join(','));
    args.push('-t', `${threads}`, '--output-format', 'jsonl');
    const output = execFileSync(this.#program('llama-batched-bench'), args, {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
      maxBuffer: 1 << 26,
    });
    const lines = output.split('\n').filter((line) => line.startsWith('{'));
    return lines.map((line) => {
      const result = JSON.parse(line) as { pl: number; pp: number; speed_pp: number; speed_tg: number };
      return {
        sequences: result.pl,
        promptTokens: result.pp,
        prefillPerSecond: result.speed_pp,
        generationPerSecond: result.speed_tg,
      };
    });
  }

  /** llama-server with a slot for each of `slots` clients, 1024 tokens each. */
  serve(model: string, weights: string, port: number, threads: number, slots: number): ChildProcess {
    const args = ['-m', this.#quantised(model, weights), '--port', `${port}`, '-t', `${threads}`];
    args.push('-np', `${slots}`, '-c', `${slots * 1024}`, '-b', '2048', '-ub', '512', '--no-webui');
    return spawn(this.#program('llama-server'), args, { stdio: 'ignore' });
  }

  #program(name: string): string {
    return join(this.#directory, 'llama.cpp', 'build', 'bin', name);
  }
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
  run('cmake', '-S', 'llama.cpp', '-B', 'llama.cpp/build', '-DGGML_NATIVE=ON', '-DLLAMA_CURL=OFF');
  const targets = ['llama-batched-bench', 'llama-quantize', 'llama-server'];
  run('cmake', '--build', 'llama.cpp/build', '--config', 'Release', '-j', '2', '--target', ...targets);
}

/** The GGUF that `path` is or holds. */
export function ggufOf(path: string): string {
  if (!statSync(path).isDirectory()) return path;
  const files = readdirSync(path).filter((name) => name.endsWith('.gguf'));
  if (files.length !== 1)
    throw new Error(`${path} holds ${files.length} GGUF files; the comparison needs one.`);
  return join(path, files[0]!);
}
