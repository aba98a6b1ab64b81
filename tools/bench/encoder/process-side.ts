import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import type { Answer, OpenSide, Precision, Side } from './side.js';

const script = (name: string) => fileURLToPath(new URL(name, import.meta.url));
type Child = ChildProcessByStdio<Writable, Readable, Readable>;

/** A side of peers.py. */
export function pythonSide(
  python: string,
  side: 'torch' | 'openvino',
  precision: Precision,
  threads: number,
): Side {
  const args = ['--side', side, '--precision', precision, '--threads', String(threads)];
  return processSide(`${side} ${precision}`, precision, (folder) => [
    python,
    script('peers.py'),
    folder,
    ...args,
  ]);
}

/** A side of peers.mjs. */
export function nodeSide(
  modules: string,
  side: 'transformers.js' | 'onnxruntime-node',
  precision: Precision,
  threads: number,
): Side {
  const args = [side, precision, String(threads), modules];
  return processSide(`${side} ${precision}`, precision, (folder) => [
    process.execPath,
    script('peers.mjs'),
    folder,
    ...args,
  ]);
}

function processSide(name: string, precision: Precision, commandOf: (folder: string) => string[]): Side {
  return { name, precision, isSkein: false, open: (folder) => openProcess(name, commandOf(folder)) };
}

/** A process that answers each line with a line. */
async function openProcess(name: string, [program, ...args]: string[]): Promise<OpenSide> {
  const child: Child = spawn(program!, args, { stdio: ['pipe', 'pipe', 'pipe'] });
  const errors: string[] = [];
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    errors.push(text);
    if (errors.length > 50) errors.shift();
  });
  child.stdin.on('error', () => {}); // it has ended, which the missing answer says
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const answer = async <T>(): Promise<T> => {
    for (;;) {
      const { value, done } = await lines.next();
      if (done) throw new Error(`${name} ended: ${errors.join('').trim().slice(-2000)}`);
      if (value.startsWith('{')) return JSON.parse(value) as T;
    }
  };
  const { version } = await answer<{ version: string }>();
  return {
    version,
    embed(calls) {
      child.stdin.write(`${JSON.stringify({ calls })}\n`);
      return answer<Answer>();
    },
    async close() {
      // ONNX Runtime may hang when it gives a large model back.
      child.kill('SIGKILL');
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
    },
  };
}
