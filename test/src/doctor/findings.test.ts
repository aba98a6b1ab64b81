import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { report } from '../../../src/commands/doctor.js';
import {
  type MachineFacts,
  machineFacts,
  machineFindings,
  readingFinding,
} from '../../../src/doctor/machine-findings.js';
import { cacheFinding, hubFinding, portFinding } from '../../../src/doctor/place-findings.js';
import { readingRate } from '../../../src/doctor/reading-rate.js';

const FACTS: MachineFacts = {
  machine: { cpu: 'Abacus', cores: 8, memoryGiB: 16, features: ['avx2'] },
  threads: 4,
  fewer: 'a CPU quota allows 4 of 8 processors',
  memory: { bytes: 8 * 2 ** 30, from: 'memory.max in /sys/fs/cgroup' },
  totalBytes: 16 * 2 ** 30,
  instructionSets: () => ['scalar', 'avx2', 'avx512'],
  isa: undefined,
};
const findingOf = (part: string, facts: Partial<MachineFacts>) =>
  machineFindings({ ...FACTS, ...facts }).find((finding) => finding.part === part);

describe('the machine', () => {
  it('is described as it is', () => {
    expect(report(machineFindings(FACTS))).toBe(
      [
        'processor  ok     Abacus, 8 processors (avx2)',
        'kernels    ok     native, with avx512',
        'threads    ok     4 compute by default: a CPU quota allows 4 of 8 processors',
        'memory     ok     8.0 GiB of 16.0 GiB can be used: memory.max in /sys/fs/cgroup',
        '',
      ].join('\n'),
    );
  });

  it('has slower kernels where SKEIN_ISA names them, or the addon does not load', () => {
    expect(findingOf('kernels', { isa: 'avx512' })?.state).toBe('ok');
    expect(findingOf('kernels', { isa: 'avx2' })).toStrictEqual({
      part: 'kernels',
      state: 'note',
      text: 'native, with avx2, which SKEIN_ISA names',
      advice: 'without it they take avx512',
    });
    expect(findingOf('kernels', { isa: 'amx' })).toMatchObject({
      state: 'wrong',
      advice: 'it runs scalar, avx2, avx512',
    });
    const instructionSets = () => {
      throw new Error('no compiler');
    };
    expect(findingOf('kernels', { instructionSets })).toMatchObject({
      state: 'note',
      text: 'WebAssembly computes, several times slower: no compiler',
    });
  });

  it('has little memory', () => {
    expect(findingOf('memory', { memory: { bytes: 2 ** 29, from: 'here' } })?.state).toBe('note');
  });

  it('knows this one', () => {
    const findings = machineFindings(machineFacts());
    expect(findings.map(({ part }) => part)).toStrictEqual(['processor', 'kernels', 'threads', 'memory']);
    expect(findings.find(({ part }) => part === 'kernels')?.state).not.toBe('wrong');
  });

  it('says what one sequence can have of the rate of memory', async () => {
    const finding = await readingFinding(2, async () => 20.4e9);
    expect(finding.text).toBe(
      '20.4 GB/s from memory with 2 threads: one sequence generates at most 20 tokens/s for each GB of weights',
    );
  });

  it('reads memory with every thread', async () => {
    expect(await readingRate(1)).toBeGreaterThan(1e7);
  });
});

describe('the folder of models', () => {
  it('is counted, where it is and where it would be made', () => {
    const folder = mkdtempSync(join(tmpdir(), 'skein-doctor-'));
    const cacheFolder = join(folder, 'not', 'there');
    expect(cacheFinding({ cacheFolder })).toMatchObject({ text: expect.stringContaining('0 in ') });
    mkdirSync(cacheFolder, { recursive: true });
    expect(cacheFinding({ cacheFolder }).state).not.toBe('wrong');
  });

  it('cannot be made below a file', () => {
    const file = join(mkdtempSync(join(tmpdir(), 'skein-doctor-')), 'file');
    writeFileSync(file, '');
    expect(cacheFinding({ cacheFolder: join(file, 'hub') })).toStrictEqual({
      part: 'models',
      state: 'wrong',
      text: `${join(file, 'hub')} cannot be made: ${file} is no folder`,
      advice: 'HF_HUB_CACHE names another folder',
    });
  });
});

describe('the hub', () => {
  const endpoint = 'https://hub.example';
  it('answers, refuses, is away, or is not asked', async () => {
    const asked: string[] = [];
    const hub = (answer: () => Response) =>
      hubFinding({ endpoint, isOffline: false }, async (address) => {
        asked.push(String(address));
        return answer();
      });
    expect(await hub(() => new Response('[]'))).toMatchObject({ state: 'ok', text: `${endpoint} answers` });
    expect(await hub(() => new Response('', { status: 403 }))).toMatchObject({
      state: 'note',
      text: `${endpoint} answers 403`,
    });
    const away = await hub(() => {
      throw new TypeError('fetch failed', { cause: new Error('getaddrinfo ENOTFOUND hub.example') });
    });
    expect(away.text).toBe(`${endpoint} does not answer: getaddrinfo ENOTFOUND hub.example`);
    expect(asked).toHaveLength(3);
    const offline = await hubFinding({ endpoint, isOffline: true }, () => {
      throw new Error('asked');
    });
    expect(offline.state).toBe('ok');
  });
});

describe('the port', () => {
  it('is free, or in use', async () => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as { port: number };
    expect(await portFinding(port)).toMatchObject({ state: 'note', text: `${port} is in use` });
    await new Promise((resolve) => server.close(resolve));
    expect(await portFinding(port)).toMatchObject({ state: 'ok', text: `${port} is free` });
    expect((await portFinding(port, '192.0.2.1')).text).toContain('cannot be opened');
  });
});
