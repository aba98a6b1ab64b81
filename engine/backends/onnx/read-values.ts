import { type ChildProcess, fork } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { messageOf } from '../../../base/error-text.js';
import { childOptions } from '../../../base/run-step.js';
import { BackendError } from '../backend.js';
import type { OnnxValues } from './describe-onnx.js';
import type { OnnxDescription } from './describe-process.js';

/** Milliseconds that opening a file may take: the default time that its instances may take to start. */
const LONGEST_MS = 300_000;

/** Files that are opened at once: each takes a process, and as much memory as the model. */
const MAX_AT_ONCE = Math.max(2, availableParallelism());

let numOpening = 0;
const waiting: (() => void)[] = [];

/** Inputs and outputs of the model in a file, which a process of its own opens. @throws BackendError where it cannot be opened */
export async function readValues(path: string): Promise<OnnxValues> {
  if (numOpening >= MAX_AT_ONCE) await new Promise<void>((resolve) => waiting.push(resolve));
  else numOpening++;
  try {
    return await valuesOf(path);
  } finally {
    const next = waiting.shift();
    if (next === undefined) numOpening--;
    else next();
  }
}

async function valuesOf(path: string): Promise<OnnxValues> {
  const child = fork(new URL('./describe-process.js', import.meta.url), [path], {
    execArgv: childOptions(),
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  try {
    const description = await answerOf(child);
    if ('values' in description) return description.values;
    throw new BackendError(description.problem);
  } catch (error) {
    if (error instanceof BackendError) throw error;
    throw new BackendError(`${path} cannot be opened: ${messageOf(error)}`, { cause: error });
  } finally {
    child.kill('SIGKILL');
  }
}

/** What the process answers. Rejects where it ends without an answer, or takes too long. */
function answerOf(child: ChildProcess): Promise<OnnxDescription> {
  return new Promise((resolve, reject) => {
    const give = <T>(settle: (value: T) => void, value: T) => {
      clearTimeout(timer);
      settle(value);
    };
    const timer = setTimeout(() => reject(new Error(`that took longer than ${LONGEST_MS} ms`)), LONGEST_MS);
    child.on('message', (description: OnnxDescription) => give(resolve, description));
    child.on('error', (error) => give(reject, error));
    child.on('close', (code, signal) => {
      const how = signal === null ? `ended with exit code ${code}` : `was ended by ${signal}`;
      give(reject, new Error(`the process that opened it ${how}`));
    });
  });
}
