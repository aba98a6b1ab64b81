import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { FolderError, FolderLock } from '../../../../src/commands/folder-lock.js';
import { notStored } from '../../../../src/server/files/file-errors.js';
import { freshFolders } from '../../../support/fresh-folders.js';
import {
  asKey,
  formOf,
  LIMITS,
  type StoringServer,
  storingServer,
  storingServers,
  upload,
} from '../batches/support.js';

const freshFolder = freshFolders('skein-files');
const serverOf = storingServers();
// Before the servers end: hooks run in reverse.
afterEach(() => vi.useRealTimers());

const jsonOf = async (response: Response) => [response.status, await response.json()] as const;
const errorOf = async (response: Response) => {
  const [status, body] = await jsonOf(response);
  return [status, (body as { error: { code: string; message: string } }).error] as const;
};
const send = (server: StoringServer, body: string | FormData, headers: Record<string, string> = {}) =>
  server.app.request('/v1/files', { method: 'POST', body, headers });

describe('files', () => {
  it('are stored, listed, shown, fetched and deleted', async () => {
    const server = serverOf();
    const file = await upload(server, 'one\ntwo\n');
    expect(file).toEqual({
      id: expect.stringMatching(/^file-[0-9a-f]{32}$/),
      object: 'file',
      bytes: 8,
      created_at: expect.any(Number),
      expires_at: (file.created_at as number) + 30 * 86_400,
      filename: 'in.jsonl',
      purpose: 'batch',
      status: 'processed',
      status_details: null,
    });
    const other = await upload(server, '', { purpose: 'user_data' });
    expect(await (await server.get(`/v1/files/${file.id}`)).json()).toEqual(file);
    const content = await server.get(`/v1/files/${file.id}/content`);
    expect(content.headers.get('content-disposition')).toBe("attachment; filename*=UTF-8''in.jsonl");
    expect(await content.text()).toBe('one\ntwo\n');
    expect(await (await server.get(`/v1/files/${other.id}/content`)).text()).toBe('');
    const list = async (query = '') => (await (await server.get(`/v1/files${query}`)).json()) as never;
    expect(await list()).toEqual({
      object: 'list',
      data: [other, file],
      first_id: other.id,
      last_id: file.id,
      has_more: false,
    });
    expect(await list('?order=asc&limit=1')).toMatchObject({ data: [file], has_more: true });
    expect(await list(`?order=asc&after=${file.id}`)).toMatchObject({ data: [other], has_more: false });
    expect(await list('?purpose=batch')).toMatchObject({ data: [file] });
    expect((await server.get('/v1/files?after=file-none')).status).toBe(404);
    const gone = await server.app.request(`/v1/files/${file.id}`, { method: 'DELETE' });
    expect(await gone.json()).toEqual({ id: file.id, object: 'file', deleted: true });
    for (const path of [`/v1/files/${file.id}`, `/v1/files/${file.id}/content`]) {
      expect((await errorOf(await server.get(path)))[1].code).toBe('file_not_found');
    }
  });

  it('belong to the API key that stored them', async () => {
    const keys = ['a', 'b'].map((name) => ({ name, key: `key-${name}`, weight: 1 }));
    const server = serverOf(undefined, { keys });
    const { id } = await upload(server, 'x', undefined, asKey('key-a'));
    expect((await server.get(`/v1/files/${id}`, asKey('key-a'))).status).toBe(200);
    for (const path of [`/v1/files/${id}`, `/v1/files/${id}/content`]) {
      expect((await server.get(path, asKey('key-b'))).status).toBe(404);
      expect((await server.get(path)).status).toBe(401);
    }
    const deleting = { ...asKey('key-b'), method: 'DELETE' };
    expect((await server.app.request(`/v1/files/${id}`, deleting)).status).toBe(404);
    expect(await (await server.get('/v1/files', asKey('key-b'))).json()).toMatchObject({ data: [] });
  });

  it('have names that lead nowhere', async () => {
    const folder = freshFolder();
    const server = serverOf(undefined, { folder });
    const form = new FormData();
    form.append('purpose', 'batch');
    form.append('file', new File(['x'], '../../../etc/passwd'));
    const [, file] = await jsonOf(await send(server, form));
    expect(file).toMatchObject({ filename: 'passwd' });
    expect(readdirSync(folder).sort()).toEqual(['batches', 'files']);
  });

  it('expire when they were asked to', async () => {
    const server = serverOf();
    const life = {
      purpose: 'batch',
      'expires_after[anchor]': 'created_at',
      'expires_after[seconds]': '3600',
    };
    const file = await upload(server, 'x', life);
    expect(file.expires_at).toBe((file.created_at as number) + 3600);
    vi.useFakeTimers({ now: Date.now() + 3_601_000, toFake: ['Date'] });
    expect((await server.get(`/v1/files/${file.id}`)).status).toBe(404);
    const [status, error] = await errorOf(
      await send(server, formOf('x', { ...life, 'expires_after[seconds]': '60' })),
    );
    expect([status, error]).toEqual([400, expect.objectContaining({ param: 'expires_after.seconds' })]);
  });

  it('outlive a server that was given a folder, and others do not', async () => {
    const folder = freshFolder();
    const first = storingServer(undefined, { folder });
    const { id } = await upload(first, 'kept');
    const part = join(folder, 'files', `file-${'0'.repeat(32)}.part`);
    const foreign = join(folder, 'files', 'notes.txt');
    for (const path of [part, foreign]) writeFileSync(path, 'x');
    await first.end();
    const second = serverOf(undefined, { folder });
    expect(await (await second.get(`/v1/files/${id}/content`)).text()).toBe('kept');
    await second.batches.load();
    expect([existsSync(part), existsSync(foreign)]).toEqual([false, true]);
    const temporary = storingServer();
    await upload(temporary, 'x');
    const { files } = await temporary.files.storage.paths();
    expect(existsSync(files)).toBe(true);
    await temporary.end();
    expect(existsSync(files)).toBe(false);
  });
});

describe('a record of a file that somebody has changed', () => {
  const id = `file-${'a'.repeat(32)}`;
  const facts = { id, owner: '', bytes: 1, createdAt: 1, expiresAt: 9e9, filename: 'x', purpose: 'batch' };

  it.each<[string, string, unknown]>([
    ['an id that leads out', '..', { ...facts, id: '..' }],
    ['an id of another form', 'notes', { ...facts, id: 'notes' }],
    ['the id of another file', id, { ...facts, id: `file-${'b'.repeat(32)}` }],
    ['a purpose that there is not', id, { ...facts, purpose: 'admin' }],
    ['half a character', id, { ...facts, filename: '\ud800' }],
    ['a time that is none', id, { ...facts, expiresAt: -1 }],
    ['no fields', id, null],
  ])('has %s: there is no such file', async (_, name, record) => {
    const folder = freshFolder();
    mkdirSync(join(folder, 'files'), { recursive: true });
    if (name !== '..') writeFileSync(join(folder, 'files', name), 'x');
    writeFileSync(join(folder, 'files', `${name}.json`), JSON.stringify(record));
    const server = serverOf(undefined, { folder });
    expect(await (await server.get('/v1/files')).json()).toMatchObject({ data: [] });
    for (const one of [name, id])
      expect((await server.get(`/v1/files/${encodeURIComponent(one)}/content`)).status).toBe(404);
  });

  it('or whose content is a link: there is no such file', async () => {
    const folder = freshFolder();
    mkdirSync(join(folder, 'files'), { recursive: true });
    writeFileSync(join(folder, 'secret'), 'x');
    symlinkSync(join(folder, 'secret'), join(folder, 'files', id));
    writeFileSync(join(folder, 'files', `${id}.json`), JSON.stringify(facts));
    const server = serverOf(undefined, { folder });
    expect((await server.get(`/v1/files/${id}/content`)).status).toBe(404);
    expect((await server.app.request(`/v1/files/${id}`, { method: 'DELETE' })).status).toBe(404);
    expect(readFileSync(join(folder, 'secret'), 'utf8')).toBe('x');
  });
});

describe('a file that the system refuses', () => {
  it('is told of without its path, which is in the log', async () => {
    const errors: object[] = [];
    const nothing = () => {};
    const log = {
      debug: nothing,
      info: nothing,
      warn: nothing,
      error: (fields: object) => errors.push(fields),
    };
    const folder = join(freshFolder(), 'taken');
    writeFileSync(folder, 'a file');
    const server = serverOf(undefined, {
      folder: join(folder, 'inside'),
      log: log as never,
      isStarted: false,
    });
    const [status, { code, message }] = await errorOf(await send(server, formOf('x')));
    expect([status, code]).toEqual([503, 'storage_failed']);
    expect(message).toBe('The file cannot be stored: what should be its folder is a file.');
    expect(String((errors[0] as { err: Error }).err.message)).toContain(folder);
  });

  it.each([
    ['EMFILE', 'this process has too many files open'],
    ['EUNKNOWN', 'the system refuses it'],
  ])('with %s has a reason without a path', (code, reason) => {
    const error = Object.assign(new Error(`${code}: no, open '/srv/secret'`), { code });
    expect(notStored(error)).toMatchObject({
      message: `The file cannot be stored: ${reason}.`,
      cause: error,
    });
  });
});

describe('the limits of files', () => {
  it('are those of one, of all bytes and of their number', async () => {
    const server = serverOf();
    const long = await errorOf(await send(server, formOf('x'.repeat(LIMITS.maxFileBytes + 1))));
    expect(long).toEqual([413, expect.objectContaining({ code: 'file_too_large' })]);
    for (let i = 0; i < 3; i++) await upload(server, 'x'.repeat(LIMITS.maxFileBytes));
    const full = await errorOf(await send(server, formOf('x')));
    expect(full).toEqual([413, expect.objectContaining({ code: 'storage_full' })]);
    expect(full[1].message).toContain('--max-files-bytes');
    expect(server.files.account.all).toEqual({ files: 3, bytes: LIMITS.maxBytes });
    const few = serverOf(undefined, { limits: { ...LIMITS, maxFiles: 1 } });
    await upload(few, '');
    expect((await errorOf(await send(few, formOf(''))))[1].message).toContain('--max-files)');
    const { files } = await few.files.storage.paths();
    expect(readdirSync(files)).toHaveLength(1);
  });

  it('leave half to others where there are several keys', async () => {
    const keys = ['a', 'b'].map((name) => ({ name, key: `key-${name}`, weight: 1 }));
    const server = serverOf(undefined, { keys });
    await upload(server, 'x'.repeat(LIMITS.maxFileBytes), undefined, asKey('key-a'));
    await expect(upload(server, 'x'.repeat(60_000), undefined, asKey('key-a'))).rejects.toThrow(
      /half at most/,
    );
    await upload(server, 'x'.repeat(60_000), undefined, asKey('key-b'));
  });
});

describe('a form that is none', () => {
  const boundary = 'multipart/form-data; boundary=b';
  const part = (name: string, value: string, more = '') =>
    `--b\r\nContent-Disposition: form-data; name="${name}"${more}\r\n\r\n${value}\r\n`;

  it.each<[string, string, string, number, string]>([
    ['JSON', 'application/json', '{}', 415, "'application/json'"],
    ['without a boundary', 'multipart/form-data; charset=x', 'x', 415, 'no boundary'],
    [
      'with a boundary of 300 characters',
      `multipart/form-data; boundary=${'b'.repeat(300)}`,
      'x',
      400,
      '70 characters are the most',
    ],
    ['empty', boundary, '', 400, 'in the middle'],
    ['without its end', boundary, part('purpose', 'batch'), 400, 'in the middle'],
    [
      'that ends in its file',
      boundary,
      `${part('purpose', 'batch')}--b\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\nabc`,
      400,
      'in the middle',
    ],
    ['without a file', boundary, `${part('purpose', 'batch')}--b--`, 400, "'file' is required"],
    [
      'with a file as a text',
      boundary,
      `${part('purpose', 'batch')}${part('file', 'x')}--b--`,
      400,
      "'file' is required",
    ],
    ['with a file of another name', boundary, `${part('data', 'x', '; filename="a"')}--b--`, 400, "'data'"],
    [
      'with two files',
      boundary,
      `${part('file', 'x', '; filename="a"')}${part('file', 'x', '; filename="b"')}--b--`,
      400,
      'more than one file',
    ],
    ['with a million parts', boundary, part('a', '').repeat(100_000), 400, 'more than 32 fields'],
    ['with a long field', boundary, `${part('purpose', 'x'.repeat(5000))}--b--`, 400, 'longer than 4096'],
    [
      'with a purpose that there is not',
      boundary,
      `${part('purpose', 'x')}${part('file', 'x', '; filename="a"')}--b--`,
      400,
      "'purpose'",
    ],
    ['without a purpose', boundary, `${part('file', 'x', '; filename="a"')}--b--`, 400, "'purpose'"],
    ['with a prototype', boundary, `${part('__proto__[x]', 'y')}--b--`, 400, '__proto__'],
  ])('%s is refused, and leaves nothing', async (_, contentType, body, status, words) => {
    const server = serverOf();
    const [found, error] = await errorOf(await send(server, body, { 'content-type': contentType }));
    expect([found, error.message]).toEqual([status, expect.stringContaining(words)]);
    expect(server.files.account.all).toEqual({ files: 0, bytes: 0 });
    const { files } = await server.files.storage.paths();
    expect(readdirSync(files)).toEqual([]);
  });

  it('may have fields that nobody knows, which are told', async () => {
    const server = serverOf();
    const response = await send(server, formOf('x', { purpose: 'batch', puprose: 'x' }));
    expect(response.headers.get('x-unknown-fields')).toBe('puprose');
    const strict = serverOf(undefined, { unknownFields: 'refuse' });
    expect((await send(strict, formOf('x', { purpose: 'batch', puprose: 'x' }))).status).toBe(400);
    expect(strict.files.account.all.files).toBe(0);
  });
});

describe('the lock of a folder', () => {
  it('keeps another server out while one lives', () => {
    const folder = join(freshFolder(), 'new');
    const lock = FolderLock.take(folder);
    const path = join(folder, 'in-use-by');
    expect(JSON.parse(readFileSync(path, 'utf8'))).toMatchObject({ pid: process.pid });
    writeFileSync(path, JSON.stringify({ ...JSON.parse(readFileSync(path, 'utf8')), pid: process.ppid }));
    expect(() => FolderLock.take(folder)).toThrow(FolderError);
    // A process that is not there any more.
    writeFileSync(path, JSON.stringify({ ...JSON.parse(readFileSync(path, 'utf8')), pid: 2 ** 22 + 1 }));
    FolderLock.take(folder).release();
    expect(existsSync(path)).toBe(false);
    lock.release();
    writeFileSync(path, JSON.stringify({ pid: 1, host: 'elsewhere' }));
    expect(() => FolderLock.take(folder)).toThrow(/in use/);
  });
});
