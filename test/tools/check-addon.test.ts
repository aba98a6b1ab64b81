import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { checkAddon } from '../../tools/prebuild/check-addon.mjs';

const ENTRY = 'napi_register_module_v1';
const GLIBC = { os: 'linux', cpu: 'x64', libc: 'glibc' } as const;
const MUSL = { os: 'linux', cpu: 'arm64', libc: 'musl' } as const;
const MAC = { os: 'darwin', cpu: 'arm64' } as const;

/** Strings with their places. */
class Names {
  readonly #parts = [Buffer.from('\0')];
  #length = 1;
  place(name: string): number {
    const at = this.#length;
    this.#parts.push(Buffer.from(`${name}\0`));
    this.#length += name.length + 1;
    return at;
  }
  bytes = () => Buffer.concat(this.#parts);
}

interface Content {
  machine: number;
  libraries: string[];
  wanted: string[];
  weak?: string[];
  defined?: string[];
  version?: string;
}

function fields(size: number, write: (bytes: Buffer) => void): Buffer {
  const bytes = Buffer.alloc(size);
  write(bytes);
  return bytes;
}

/** Sections: none, names, symbols, dynamic, versions. */
function elf({ machine, libraries, wanted, weak = [], defined = [ENTRY], version = 'GLIBC_2.17' }: Content) {
  const names = new Names();
  const symbol = (name: string, binding: number, section: number) =>
    fields(24, (b) => {
      b.writeUInt32LE(names.place(name), 0);
      b[4] = binding << 4;
      b.writeUInt16LE(section, 6);
    });
  const symbols = Buffer.concat([
    Buffer.alloc(24),
    ...wanted.map((name) => symbol(name, 1, 0)),
    ...weak.map((name) => symbol(name, 2, 0)),
    ...defined.map((name) => symbol(name, 1, 7)),
  ]);
  const needed = libraries.map((name) =>
    fields(16, (b) => {
      b.writeBigInt64LE(1n, 0);
      b.writeBigInt64LE(BigInt(names.place(name)), 8);
    }),
  );
  const versions = fields(32, (b) => {
    b.writeUInt16LE(1, 2); // one version,
    b.writeUInt32LE(16, 8); // after this head
    b.writeUInt32LE(names.place(version), 16 + 8);
  });
  const contents: [type: number, bytes: Buffer, count: number][] = [
    [0, Buffer.alloc(0), 0],
    [3, names.bytes(), 0],
    [11, symbols, 0],
    [6, Buffer.concat(needed), 0],
    [0x6ffffffe, versions, 1],
  ];
  let offset = 64;
  const heads = contents.map(([type, bytes, count]) => {
    const at = offset;
    offset += bytes.length;
    return fields(64, (b) => {
      b.writeUInt32LE(type, 4);
      b.writeBigInt64LE(BigInt(at), 24);
      b.writeBigInt64LE(BigInt(bytes.length), 32);
      b.writeUInt32LE(1, 40); // the section of its names
      b.writeUInt32LE(count, 44);
    });
  });
  const head = fields(64, (b) => {
    b.writeUInt32BE(0x7f454c46, 0);
    b.writeUInt16BE(0x0201, 4);
    b.writeUInt16LE(3, 16);
    b.writeUInt16LE(machine, 18);
    b.writeBigInt64LE(BigInt(offset), 40);
    b.writeUInt16LE(64, 58);
    b.writeUInt16LE(heads.length, 60);
  });
  return Buffer.concat([head, ...contents.map(([, bytes]) => bytes), ...heads]);
}

/** Commands: the libraries, the symbols. `wanted` are looked up in any library, `libraryFunctions` in the first one. */
function machO({ machine, libraries, wanted, defined = [ENTRY] }: Content, libraryFunctions = ['_malloc']) {
  const names = new Names();
  const symbol = (name: string, type: number, library: number) =>
    fields(16, (b) => {
      b.writeUInt32LE(names.place(name), 0);
      b[4] = type;
      b.writeUInt16LE(library << 8, 6);
    });
  const symbols = [
    ...wanted.map((name, i) => symbol(`_${name}`, 1, i % 2 === 0 ? 0xfe : 0)),
    ...libraryFunctions.map((name) => symbol(name, 1, 1)),
    ...defined.map((name) => symbol(`_${name}`, 0x0f, 0)),
  ];
  const loads = libraries.map((name) =>
    fields(24 + Math.ceil((name.length + 1) / 8) * 8, (b) => {
      b.writeUInt32LE(12, 0);
      b.writeUInt32LE(b.length, 4);
      b.writeUInt32LE(24, 8);
      b.write(name, 24);
    }),
  );
  const before = 32 + loads.reduce((sum, { length }) => sum + length, 24);
  const table = fields(24, (b) => {
    const strings = before + 16 * symbols.length;
    for (const [i, value] of [2, 24, before, symbols.length, strings].entries())
      b.writeUInt32LE(value, 4 * i);
  });
  const head = fields(32, (b) => {
    b.writeUInt32BE(0xcffaedfe, 0);
    b.writeUInt32LE(machine, 4);
    b.writeUInt32LE(6, 12);
    b.writeUInt32LE(loads.length + 1, 16);
  });
  return Buffer.concat([head, ...loads, table, ...symbols, names.bytes()]);
}

const X64 = { machine: 62, libraries: ['libm.so.6', 'libc.so.6'], wanted: ['napi_throw', 'malloc'] };
const ARM = { machine: 183, libraries: ['libc.so'], wanted: ['napi_throw', 'node_api_symbol_for', 'malloc'] };
const APPLE = {
  machine: 0x0100000c,
  libraries: ['/usr/lib/libSystem.B.dylib'],
  wanted: ['napi_throw', 'napi_wrap'],
};

describe('an addon for another platform', () => {
  it('may ask for the C library and for Node.js', () => {
    const asked = { libraries: X64.libraries, functionsOfNode: 1 };
    expect(checkAddon(elf(X64), GLIBC, '2.17')).toEqual(asked);
    expect(checkAddon(elf({ ...X64, weak: ['_ZNotThere'] }), GLIBC, '2.28')).toEqual(asked);
    expect(checkAddon(elf(ARM), MUSL)).toEqual({ libraries: ['libc.so'], functionsOfNode: 2 });
    expect(checkAddon(machO(APPLE), MAC)).toEqual({ libraries: APPLE.libraries, functionsOfNode: 2 });
  });

  it.each([
    ['is for linux on arm64', elf(ARM), GLIBC],
    ['is for linux on x64', elf(X64), MAC],
    ['is for darwin on x64', machO({ ...APPLE, machine: 0x01000007 }), MAC],
    [
      'asks for libstdc++.so.6, which not',
      elf({ ...X64, libraries: ['libstdc++.so.6', 'libc.so.6'] }),
      GLIBC,
    ],
    ['asks for libc.so.6, which not', elf({ ...ARM, libraries: ['libc.so.6'] }), MUSL],
    ['asks for /usr/lib/libc++.1.dylib', machO({ ...APPLE, libraries: ['/usr/lib/libc++.1.dylib'] }), MAC],
    ['asks for _ZN5skein4gemmEv, which no library', elf({ ...ARM, wanted: ['_ZN5skein4gemmEv'] }), MUSL],
    ['asks for pthread_made_up, which no library', machO({ ...APPLE, wanted: ['pthread_made_up'] }), MAC],
    ['asks for GLIBC_2.34, but has to do with glibc 2.28', elf({ ...X64, version: 'GLIBC_2.34' }), GLIBC],
    [`has no ${ENTRY}`, elf({ ...X64, defined: ['main'] }), GLIBC],
    ['is no library of Linux or macOS', Buffer.from('#!/bin/sh\n'), GLIBC],
  ])('is refused where it %s', (words, bytes, platform) => {
    expect(() => checkAddon(bytes, platform, '2.28')).toThrow(words);
  });

  it('is read as the linker writes it', () => {
    const path = fileURLToPath(new URL('../../build/Release/skein.node', import.meta.url));
    // The C++ library is not in an addon that is compiled where it is used.
    const here = { os: process.platform, cpu: process.arch, libc: 'glibc' } as const;
    if (process.platform === 'linux') {
      expect(() => checkAddon(readFileSync(path), here)).toThrow(/^asks for .*libstdc\+\+/);
    }
  });
});
