import { messageOf } from './error-text.js';
import { asSentence } from './sentences.js';

const READING: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file.',
  ENOTDIR: 'there is no such file.',
  EISDIR: 'it is a folder.',
  EACCES: 'this user may not read it; chmod a+r gives the right to, or start skein as a user who has it.',
  EPERM: 'this user may not read it; chmod a+r gives the right to, or start skein as a user who has it.',
  EIO: 'the disk gives an error; copy it from elsewhere once more.',
};

const ROOM = 'make room, or name a folder of another disk';
const OTHER_FOLDER = 'name a folder that can be';
/** By error code: what is wrong, and what to do about it. */
const WRITING: Readonly<Record<string, readonly [string, string?]>> = {
  ENOENT: ['its folder is not there'],
  ENOTDIR: ['what should be its folder is a file'],
  EEXIST: ['a file of this name is there'],
  EISDIR: ['it is a folder'],
  EACCES: ['this user may not write there', OTHER_FOLDER],
  EPERM: ['this user may not write there', OTHER_FOLDER],
  EROFS: ['the file system is read-only', OTHER_FOLDER],
  ENOSPC: ['the disk is full', ROOM],
  EDQUOT: ['the quota of disk space is used up', ROOM],
  EIO: ['the disk gives an error', 'name a folder of another disk'],
  EMFILE: ['this process has too many files open', 'raise the limit (ulimit -n)'],
  ENFILE: ['the system has too many files open'],
  ELOOP: ['it is a link', OTHER_FOLDER],
};

/** Says in words why something cannot be read, and what to do. */
export function readProblem(error: unknown): string {
  return READING[codeOf(error)] ?? asSentence(messageOf(error));
}

/** Says in words why something cannot be written, and what to do. */
export function writeProblem(error: unknown): string {
  const known = WRITING[codeOf(error)];
  return known === undefined ? asSentence(messageOf(error)) : `${known.join('; ')}.`;
}

/** Says why something cannot be written, without advice, for a sentence that has its own. */
export function writeReason(error: unknown): string {
  return writeReasonOfCode(error) ?? messageOf(error);
}

/** The same in words that name no path; null for an error of another kind, whose text may have one. */
export function writeReasonOfCode(error: unknown): string | null {
  return WRITING[codeOf(error)]?.[0] ?? null;
}

function codeOf(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? '';
}
