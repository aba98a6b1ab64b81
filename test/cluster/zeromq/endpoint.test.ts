import { describe, expect, it } from 'vitest';
import { readCertificate, z85 } from '../../../cluster/zeromq/curve.js';
import { EndpointError, readEndpoint } from '../../../cluster/zeromq/endpoint.js';

const read = (text: string) => readEndpoint('kvEventsEndpoint', text);

describe('addresses of ZeroMQ', () => {
  it.each([
    ['tcp://*:5557', true, true],
    ['tcp://0.0.0.0:5557', true, true],
    ['tcp://[::]:5557', true, true],
    ['tcp://127.0.0.1:5557', true, false],
    ['tcp://localhost:*', true, false],
    ['tcp://[::1]:0', true, false],
    ['ipc:///run/skein/kv', true, false],
    ['tcp://router.example:5557', false, true],
    ['tcp://10.1.2.3:5557', false, true],
    ['>tcp://127.0.0.1:5557', false, false],
    ['>ipc:///run/skein/kv', false, false],
    ['@tcp://10.1.2.3:5557', true, true],
  ])('%s: bound %s, remote %s', (text, isBound, isRemote) => {
    expect(read(text)).toEqual({ address: text.replace(/^[@>]/, ''), isBound, isRemote });
  });

  it.each([
    'localhost:5557',
    'http://localhost:5557',
    'tcp://',
    'tcp://host',
    'tcp://host:99999',
    'tcp://ho st:1',
    'tcp://host:*',
    '>tcp://*:5557',
    'ipc://',
    `ipc:///${'x'.repeat(600)}`,
  ])('%s is refused with its name', (text) => {
    expect(() => read(text)).toThrow(EndpointError);
    expect(() => read(text)).toThrow('kvEventsEndpoint is "');
  });
});

describe('keys of CURVE', () => {
  it('are read from files of pyzmq and CZMQ', () => {
    const text =
      '#   ****  Generated on 2026-01-01 by pyzmq  ****\nmetadata\ncurve\n    public-key = "Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID"\n    secret-key = "D:)Q[IlAW!ahhC2ac:9*A}h:p?([4%wOTJ%JR%cs"\n';
    expect(readCertificate('f', text)).toEqual({
      publicKey: 'Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID',
      secretKey: 'D:)Q[IlAW!ahhC2ac:9*A}h:p?([4%wOTJ%JR%cs',
    });
    expect(readCertificate('f', text.replace(/.*secret.*\n/, '')).secretKey).toBeNull();
    expect(() => readCertificate('The file f', 'public-key = "short"')).toThrow(
      'The file f has no line public-key',
    );
    expect(() => readCertificate('f', `public-key = "${'~'.repeat(40)}"`)).toThrow(EndpointError);
  });

  it('have the text of RFC 32', () => {
    expect(z85(Uint8Array.of(0x86, 0x4f, 0xd2, 0x6f, 0xb5, 0x59, 0xf7, 0x5b))).toBe('HelloWorld');
  });
});
