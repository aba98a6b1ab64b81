// What a compiled addon asks of the system that loads it, read from its file: ELF on Linux, Mach-O on macOS, 64 bits, little-endian.

/**
 * @typedef {object} Addon
 * @property {string} os as Node.js names it
 * @property {string} cpu as Node.js names it
 * @property {boolean} isLibrary it can be loaded by a running program
 * @property {string[]} libraries names of the libraries that it loads
 * @property {string[]} versions of their functions, such as "GLIBC_2.28"; none on macOS
 * @property {string[]} wanted functions that others have to define; on macOS those that no library is named for
 * @property {string[]} defined functions that others may call
 */

/** @param {Buffer} bytes the whole file @returns {Addon} @throws Error if it is no such file */
export function readAddon(bytes) {
  const magic = bytes.length < 64 ? 0 : bytes.readUInt32BE(0);
  if (magic === 0x7f454c46 && bytes.readUInt16BE(4) === 0x0201) return readElf(bytes);
  if (magic === 0xcffaedfe) return readMachO(bytes);
  throw new Error('is no library of Linux or macOS with 64 bits');
}

/** @param {Buffer} bytes @param {number} offset */
const long = (bytes, offset) => Number(bytes.readBigUInt64LE(offset));

/** A string that ends with a zero byte. @param {Buffer} bytes @param {number} offset */
const text = (bytes, offset) => bytes.toString('latin1', offset, bytes.indexOf(0, offset));

const ELF_CPUS = new Map([
  [62, 'x64'],
  [183, 'arm64'],
]);
const ELF_SHARED = 3;
const SECTION = { dynamic: 6, symbols: 11, versions: 0x6ffffffe };
const NEEDED = 1;
const WEAK = 2;

/** @param {Buffer} bytes @returns {Addon} */
function readElf(bytes) {
  const sections = elfSections(bytes);
  /** @param {number} type */
  const one = (type) => sections.find((section) => section.type === type);
  return {
    os: 'linux',
    cpu: ELF_CPUS.get(bytes.readUInt16LE(18)) ?? 'another processor',
    isLibrary: bytes.readUInt16LE(16) === ELF_SHARED,
    libraries: elfLibraries(bytes, one(SECTION.dynamic)),
    versions: elfVersions(bytes, one(SECTION.versions)),
    ...elfSymbols(bytes, one(SECTION.symbols)),
  };
}

/** @typedef {{ type: number, offset: number, size: number, link: number, count: number, names: number }} Section */

/** @param {Buffer} bytes @returns {Section[]} names: where the section's strings begin */
function elfSections(bytes) {
  const [begin, size, count] = [long(bytes, 40), bytes.readUInt16LE(58), bytes.readUInt16LE(60)];
  const sections = Array.from({ length: count }, (_, i) => {
    const at = begin + i * size;
    return {
      type: bytes.readUInt32LE(at + 4),
      offset: long(bytes, at + 24),
      size: long(bytes, at + 32),
      link: bytes.readUInt32LE(at + 40),
      count: bytes.readUInt32LE(at + 44),
    };
  });
  return sections.map((section) => ({ ...section, names: sections[section.link]?.offset ?? 0 }));
}

/** @param {Buffer} bytes @param {Section | undefined} dynamic */
function elfLibraries(bytes, dynamic) {
  const libraries = [];
  for (let at = dynamic?.offset ?? 0, end = at + (dynamic?.size ?? 0); dynamic && at < end; at += 16) {
    if (long(bytes, at) === NEEDED) libraries.push(text(bytes, dynamic.names + long(bytes, at + 8)));
  }
  return libraries;
}

/** Lists of lists, each entry with the distance to the next one. @param {Buffer} bytes @param {Section | undefined} section */
function elfVersions(bytes, section) {
  const versions = [];
  for (let library = 0, at = section?.offset ?? 0; section && library < section.count; library++) {
    let one = at + bytes.readUInt32LE(at + 8);
    for (let i = 0; i < bytes.readUInt16LE(at + 2); i++) {
      versions.push(text(bytes, section.names + bytes.readUInt32LE(one + 8)));
      one += bytes.readUInt32LE(one + 12);
    }
    at += bytes.readUInt32LE(at + 12);
  }
  return versions;
}

/** What is weak may stay undefined. @param {Buffer} bytes @param {Section | undefined} section */
function elfSymbols(bytes, section) {
  /** @type {{ wanted: string[], defined: string[] }} */
  const symbols = { wanted: [], defined: [] };
  for (let at = section?.offset ?? 0, end = at + (section?.size ?? 0); section && at < end; at += 24) {
    const name = text(bytes, section.names + bytes.readUInt32LE(at));
    const isDefined = bytes.readUInt16LE(at + 6) !== 0;
    if (isDefined) symbols.defined.push(name);
    else if (name !== '' && bytes[at + 4] >> 4 !== WEAK) symbols.wanted.push(name);
  }
  return symbols;
}

const MAC_CPUS = new Map([
  [0x01000007, 'x64'],
  [0x0100000c, 'arm64'],
]);
const MAC_LIBRARIES = [6, 8];
const COMMAND = { symbols: 2, library: 12 };
/**
 * Numbers of libraries that stand for any library that has the function: Apple's linker writes one, zig's the
 * other.
 */
const ANY_LIBRARY = [0xfe, 0];

/** @param {Buffer} bytes @returns {Addon} */
function readMachO(bytes) {
  /** @type {Addon} */
  const addon = {
    os: 'darwin',
    cpu: MAC_CPUS.get(bytes.readUInt32LE(4)) ?? 'another processor',
    isLibrary: MAC_LIBRARIES.includes(bytes.readUInt32LE(12)),
    libraries: [],
    versions: [],
    wanted: [],
    defined: [],
  };
  let at = 32;
  for (let i = 0; i < bytes.readUInt32LE(16); i++) {
    const command = bytes.readUInt32LE(at);
    if (command === COMMAND.library) addon.libraries.push(text(bytes, at + bytes.readUInt32LE(at + 8)));
    if (command === COMMAND.symbols) addMacSymbols(bytes, at, addon);
    at += bytes.readUInt32LE(at + 4);
  }
  return addon;
}

/** Names begin with an underscore, which is left out. @param {Buffer} bytes @param {number} command @param {Addon} addon */
function addMacSymbols(bytes, command, addon) {
  const [begin, count, names] = [8, 12, 16].map((field) => bytes.readUInt32LE(command + field));
  for (let at = begin; at < begin + count * 16; at += 16) {
    const type = bytes[at + 4];
    const isExternal = (type & 0xe0) === 0 && (type & 1) === 1;
    if (!isExternal) continue;
    const name = text(bytes, names + bytes.readUInt32LE(at)).replace(/^_/, '');
    if ((type & 0x0e) !== 0) addon.defined.push(name);
    else if (ANY_LIBRARY.includes(bytes.readUInt16LE(at + 6) >> 8)) addon.wanted.push(name);
  }
}
