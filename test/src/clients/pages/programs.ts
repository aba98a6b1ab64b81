import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

export interface Printed {
  /** What was written at once. */
  pieces: string[];
  text: string;
}

const CLIENTS_OWN = /^(SKEIN|OPENAI|ANTHROPIC|OLLAMA|LANGCHAIN|LANGSMITH|HF|HUGGING|LITELLM)_/;

/** A process that runs one program after the other, with their packages loaded once. */
export class Programs {
  readonly #process: ChildProcess;
  readonly #answers: NodeJS.AsyncIterator<string>;
  #complaints = '';

  private constructor(command: string, args: readonly string[]) {
    const kept = Object.entries(process.env).filter(([name]) => !CLIENTS_OWN.test(name));
    // LiteLLM would ask GitHub for prices.
    const env = { ...Object.fromEntries(kept), LITELLM_LOCAL_MODEL_COST_MAP: 'True' };
    this.#process = spawn(command, args, { env, stdio: ['pipe', 'pipe', 'pipe'] });
    this.#answers = createInterface({ input: this.#process.stdout! })[Symbol.asyncIterator]();
    this.#process.stderr!.setEncoding('utf8').on('data', (text: string) => {
      this.#complaints += text;
    });
  }

  static python(command: string): Programs {
    return new Programs(command, [fileURLToPath(new URL('./driver.py', import.meta.url))]);
  }

  /** @param folder of the programs, whose `node_modules` they import */
  static node(folder: string): Programs {
    return new Programs(process.execPath, [fileURLToPath(new URL('./driver.mjs', import.meta.url)), folder]);
  }

  async run(program: string): Promise<Printed> {
    this.#process.stdin!.write(`${JSON.stringify({ program })}\n`);
    const { value, done } = await this.#answers.next();
    if (done) throw new Error(`The process that runs programs has ended: ${this.#complaints}`);
    const { pieces, error } = JSON.parse(value) as { pieces: string[]; error: string | null };
    if (error !== null) throw new Error(`${error}\nof the program\n${program}`);
    return { pieces, text: pieces.join('') };
  }

  close(): void {
    this.#process.stdin!.end();
  }
}

/** Packages that a Python does not have in the version that CI has. In CI that is an error. */
export function missingPackages(python: string | null, pinned: ReadonlyMap<string, string>): string[] {
  if (python === null) return [...pinned.keys()];
  const script =
    'import importlib.metadata as m; print(*(d.name + "==" + d.version for d in m.distributions()))';
  const plain = (name: string) => name.toLowerCase().replaceAll('_', '-');
  const installed = new Set(plain(execFileSync(python, ['-c', script], { encoding: 'utf8' })).split(/\s+/));
  const missing = [...pinned].filter(([name, version]) => !installed.has(`${plain(name)}==${version}`));
  const names = missing.map(([name]) => name);
  if (names.length > 0 && process.env.CI === 'true')
    throw new Error(`${python} does not have ${names.join(', ')}.`);
  if (names.length > 0) console.warn(`${python} does not have ${names.join(', ')}: their pages are skipped.`);
  return names;
}
