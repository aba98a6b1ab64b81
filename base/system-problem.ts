import { asSentence } from './sentences.js';

const READING: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file.',
  ENOTDIR: 'there is no such file.',
  EISDIR: 'it is a folder.',
  EACCES: 'this user may not read it; chmod a+r gives the right to, or start skein as a user who has it.',
  EPERM: 'this user may not read it; chmod a+r gives the right to, or start skein as a user who has it.',
  EIO: 'the disk gives an error; copy it from elsewhere once more.',
};

const ROOM = 'make room, or name a folder of another disk.';
const OTHER_FOLDER = 'name a folder that can be.';
const WRITING: Readonly<Record<string, string>> = {
  ENOENT: 'its folder is not there.',
  ENOTDIR: 'what should be its folder is a file.',
  EISDIR: 'it is a folder.',
  EACCES: `this user may not write there; ${OTHER_FOLDER}`,
  EPERM: `this user may not write there; ${OTHER_FOLDER}`,
  EROFS: `the file system is read-only; ${OTHER_FOLDER}`,
  ENOSPC: `the disk is full; ${ROOM}`,
  EDQUOT: `the quota of disk space is used up; ${ROOM}`,
  EIO: 'the disk gives an error; name a folder of another disk.',
};

/** Why something cannot be read, in words instead of the codes of the operating system, and what to do. */
export function readProblem(error: unknown): string {
  return problemOf(error, READING);
}

/** Why something cannot be written, likewise. */
export function writeProblem(error: unknown): string {
  return problemOf(error, WRITING);
}

function problemOf(error: unknown, words: Readonly<Record<string, string>>): string {
  const { code, message } = error as NodeJS.ErrnoException;
  return words[code ?? ''] ?? asSentence(message);
}
