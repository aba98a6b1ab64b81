import { asSentence } from '../../base/sentences.js';

const PROBLEMS: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file.',
  ENOTDIR: 'there is no such file.',
  EISDIR: 'it is a folder.',
  EACCES: 'this user may not read it.',
  EPERM: 'this user may not read it.',
};

/** Describes in words why a file cannot be read, instead of the operating system's code. */
export function fileProblem(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  return PROBLEMS[code ?? ''] ?? asSentence(message);
}
