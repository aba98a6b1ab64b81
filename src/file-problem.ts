import { asSentence } from '../base/sentences.js';

const PROBLEMS: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file.',
  ENOTDIR: 'there is no such file.',
  EISDIR: 'it is a folder.',
  EACCES: 'this user may not read it.',
  EPERM: 'this user may not read it.',
};

/** Why a file cannot be read, in words rather than in the codes of the operating system. */
export function fileProblem(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  return PROBLEMS[code ?? ''] ?? asSentence(message);
}
