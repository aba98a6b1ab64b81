import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));
const script = fileURLToPath(new URL('build-child.ts', import.meta.url));

/** A process that builds (see build-child.ts). */
export class BuildProcess {
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #ended: Promise<unknown[]>;
  output = '';
  errors = '';

  constructor(
    kind: 'cache' | 'directory',
    model: string,
    target: string,
    options: { hold?: boolean; unprivileged?: boolean } = {},
  ) {
    const mode = options.hold ? ['hold'] : options.unprivileged ? ['unprivileged'] : [];
    const args = ['--import', 'tsx', script, kind, model, target, ...mode];
    this.#child = spawn(process.execPath, args, { cwd: root });
    this.#child.stdout.on('data', (chunk) => {
      this.output += chunk;
    });
    this.#child.stderr.on('data', (chunk) => {
      this.errors += chunk;
    });
    this.#ended = once(this.#child, 'close');
  }

  /** Resolves once the process has said so; rejects where it ends without. */
  async said(line: string): Promise<void> {
    while (!this.output.split('\n').includes(line)) {
      const ended = await Promise.race([
        once(this.#child.stdout, 'data').then(() => false),
        this.#ended.then(() => true),
      ]);
      if (ended && !this.output.split('\n').includes(line)) {
        throw new Error(`The process ended without "${line}": ${this.output}${this.errors}`);
      }
    }
  }

  /** Lets a held process continue. */
  release(): void {
    this.#child.stdin.end('x');
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  async end(): Promise<{ code: number | null; signal: string | null; output: string; errors: string }> {
    const [code, signal] = (await this.#ended) as [number | null, string | null];
    return { code, signal, output: this.output, errors: this.errors };
  }
}
