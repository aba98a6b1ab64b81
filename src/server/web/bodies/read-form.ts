import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { BusboyFileStream } from '@fastify/busboy';
import { messageOf } from '../../../../base/error-text.js';
import { ApiError } from '../errors.js';
import { bodyCoding, inflated } from './inflate-body.js';

/** The body of a request as it comes. */
export interface FormSource {
  contentType: string | undefined;
  contentEncoding: string | undefined;
  chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>;
}

/** Reads a file's bytes as they come. */
export type ReadFile = (filename: string, chunks: AsyncIterable<Uint8Array>) => Promise<void>;

const MAX_FIELDS = 32;
/** Bytes of the longest value of a field. */
const MAX_FIELD_BYTES = 4096;
const MAX_NAME_LENGTH = 256;
const LIMITS = {
  files: 1,
  fields: MAX_FIELDS,
  parts: MAX_FIELDS + 1,
  fieldSize: MAX_FIELD_BYTES,
  headerPairs: 16,
  headerSize: 8192,
};

/** A name of a form's field, with the field of an object that it may stand for: `expires_after[seconds]`. */
const FIELD_NAME = /^([^[\]]+)(?:\[([^[\]]+)\])?$/;

/**
 * Reads a body of multipart/form-data part by part; nothing of the file is held.
 * @param onFile reads the file, whose field is `file`
 * @returns the other fields, `a[b]` as {a: {b}}.
 * @throws ApiError 400, 415; what `onFile` throws.
 */
export async function readForm(source: FormSource, onFile: ReadFile): Promise<Record<string, unknown>> {
  const { contentType = '', contentEncoding } = source;
  const coding = bodyCoding(contentEncoding);
  if (!/^multipart\/form-data\s*;/i.test(contentType)) throw noForm(`it is '${contentType.slice(0, 100)}'`);
  // The bundle of the command line has the default alone.
  const { Busboy } = (await import('@fastify/busboy')).default;
  const form = begun(() => new Busboy({ headers: { 'content-type': contentType }, limits: LIMITS }));
  const fields: Record<string, unknown> = {};
  let reading: Promise<void> | null = null;
  let file: BusboyFileStream | null = null;
  const around = { bytes: 0 };
  const fail = (error: unknown) => void form.destroy(error as Error);
  form.on('file', (name, stream, filename) => {
    if (name !== 'file')
      fail(
        new ApiError(400, `The form has a file '${shortName(name)}'; it must be 'file'.`, { param: 'file' }),
      );
    file = stream;
    // The parser emits errors of its own without ending the stream.
    stream.on('error', (error) => stream.destroy(error));
    reading = onFile(nameOf(filename), chunksOf(stream, around));
    reading.catch(fail);
  });
  form.on('field', (name, value, _, isCut) => {
    if (isCut) fail(fieldTooLong(name));
    else if (!addField(fields, name, value)) fail(badForm(`it has a field '${shortName(name)}'`));
  });
  form.on('filesLimit', () => fail(badForm('it has more than one file')));
  form.on('partsLimit', () => fail(tooManyParts()));
  form.on('fieldsLimit', () => fail(tooManyParts()));
  try {
    const chunks = coding === null ? source.chunks : inflated(source.chunks, coding);
    await pipeline(Readable.from(sliced(chunks, around), { objectMode: false }), form);
  } catch (error) {
    form.destroy();
    (file as BusboyFileStream | null)?.destroy(error as Error);
    // The file is no longer read, however far that came.
    await (reading as Promise<void> | null)?.catch(() => {});
    throw ofForm(error);
  }
  await reading;
  if (reading !== null) return fields;
  const message = "The field 'file' is required: a part of the form with a file name.";
  throw new ApiError(400, message, { param: 'file', code: 'missing_required_parameter' });
}

/** Bytes that are parsed in one turn: of small parts, each of which costs as much as many bytes. */
const SLICE = 16 * 1024;

/** Most bytes of a form around its file, with what is read ahead: a compressed body costs its sender little. */
const MAX_AROUND = 2 ** 20;

/** Bytes of a form that have come, less those of its file that were read. */
interface Around {
  bytes: number;
}

async function* sliced(chunks: FormSource['chunks'], around: Around): AsyncGenerator<Uint8Array> {
  for await (const chunk of chunks) {
    for (let start = 0; start < chunk.length; start += SLICE) {
      const slice = chunk.subarray(start, start + SLICE);
      around.bytes += slice.length;
      if (around.bytes > MAX_AROUND) throw badForm(`it has more than ${MAX_AROUND} bytes besides its file`);
      yield slice;
    }
  }
}

async function* chunksOf(stream: BusboyFileStream, around: Around): AsyncGenerator<Uint8Array> {
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    around.bytes -= chunk.length;
    yield chunk;
  }
}

function begun<T>(begin: () => T): T {
  try {
    return begin();
  } catch (error) {
    if (/boundary/i.test(messageOf(error))) throw noForm('it names no boundary');
    // The parser refuses what it cannot search for.
    throw badForm('its Content-Type has a boundary that cannot be used; 70 characters are the most');
  }
}

/** Adds a field; false where its name cannot be one. */
function addField(fields: Record<string, unknown>, name: string | undefined, value: string): boolean {
  const [, outer, inner] = FIELD_NAME.exec(name ?? '') ?? [];
  if (outer === undefined || outer === '__proto__' || inner === '__proto__') return false;
  if (inner === undefined) {
    fields[outer] = value;
    return true;
  }
  const object = Object.hasOwn(fields, outer) ? fields[outer] : {};
  if (typeof object !== 'object' || object === null) return false;
  fields[outer] = { ...object, [inner]: value };
  return true;
}

/** The file's name without folders, of which busboy leaves those with backslashes and slashes out, or a name for one without. */
function nameOf(filename: string | undefined): string {
  // Control characters would be part of a header when the file is fetched.
  const name = (filename ?? '')
    .replaceAll(/[\p{Cc}\p{Surrogate}]/gu, '')
    .slice(0, MAX_NAME_LENGTH)
    .replace(/\p{Surrogate}$/u, '');
  return name === '' || name === '.' || name === '..' ? 'file' : name;
}

const shortName = (name: string | undefined) => (name ?? '').slice(0, 100);

function ofForm(error: unknown): unknown {
  if (error instanceof ApiError) return error;
  const { message, code } = error as NodeJS.ErrnoException;
  // Errors of the socket have a code, those of the parser none.
  if (code !== undefined) return error;
  return badForm(
    /unexpected end|terminated early/i.test(message)
      ? 'it ends in the middle of a part'
      : 'it cannot be parsed',
  );
}

function noForm(found: string): ApiError {
  const message = `The Content-Type must be 'multipart/form-data; boundary=...', but ${found}.`;
  return new ApiError(415, message, { code: 'unsupported_media_type' });
}

function badForm(what: string): ApiError {
  return new ApiError(400, `The form is not as it should be: ${what}.`, { code: 'invalid_form' });
}

function tooManyParts(): ApiError {
  return badForm(`it has more than ${MAX_FIELDS} fields`);
}

function fieldTooLong(name: string | undefined): ApiError {
  return new ApiError(400, `The field '${shortName(name)}' is longer than ${MAX_FIELD_BYTES} bytes.`, {
    param: shortName(name),
    code: 'invalid_value',
  });
}
