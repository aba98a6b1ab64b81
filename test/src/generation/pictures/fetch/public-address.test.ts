import { describe, expect, it } from 'vitest';
import { isPublicAddress } from '../../../../../src/generation/pictures/fetch/public-address.js';

/** By the IANA's registries of special addresses, and hosts of clouds that tell of the machine. */
const OTHERS: Readonly<Record<string, readonly string[]>> = {
  'this network': ['0.0.0.0', '0.255.255.255', '::'],
  'this machine': ['127.0.0.1', '127.255.255.254', '::1'],
  private: ['10.0.0.0', '10.255.255.255', '172.16.0.1', '172.31.255.255', '192.168.0.1', '192.168.255.255'],
  'unique local': ['fc00::1', 'fd00:ec2::254', 'fdff:ffff::1'],
  'link-local': ['169.254.0.1', '169.254.169.254', 'fe80::1', 'febf::1'],
  'site-local': ['fec0::1'],
  'shared by a provider': ['100.64.0.1', '100.100.100.200', '100.127.255.255'],
  multicast: ['224.0.0.1', '239.255.255.255', 'ff02::1', 'ff0e::1'],
  broadcast: ['255.255.255.255'],
  reserved: ['192.0.0.1', '192.0.0.192', '240.0.0.1', '192.88.99.1', '5f00::1', '4000::1', '1::1'],
  documents: ['192.0.2.1', '198.51.100.1', '203.0.113.1', '2001:db8::1', '3fff::1', '3fff:0fff::1'],
  benchmarks: ['198.18.0.1', '198.19.255.255', '2001:2::1'],
  mapped: ['::ffff:127.0.0.1', '::ffff:8.8.8.8', '::ffff:0:8.8.8.8', '::ffff:a00:1'],
  compatible: ['::7f00:1', '::8.8.8.8'],
  '6to4': ['2002:7f00:1::1', '2002:808:808::1'],
  NAT64: ['64:ff9b::7f00:1', '64:ff9b::808:808', '64:ff9b:1::1'],
  Teredo: ['2001:0:4136:e378:8000:63bf:3fff:fdd2'],
  discard: ['100::1'],
  ORCHID: ['2001:10::1', '2001:20::1'],
  'the host in Azure': ['168.63.129.16'],
  'no address': [
    '',
    'localhost',
    '1.2.3',
    '127.1',
    '0x7f.0.0.1',
    '2130706433',
    '8.8.8.8 ',
    'fe80::1%eth0',
    '[::1]',
  ],
};

describe('addresses of the Internet', () => {
  it.each([
    '8.8.8.8',
    '1.1.1.1',
    '93.184.216.34',
    '172.15.255.255',
    '172.32.0.1',
    '100.63.255.255',
    '100.128.0.1',
    '192.0.1.1',
    '223.255.255.255',
    '2001:4860:4860::8888',
    '2606:4700:4700::1111',
    '2a00:1450:4001:80b::200e',
  ])('are %s', (address) => {
    expect(isPublicAddress(address)).toBe(true);
  });

  it.each(Object.entries(OTHERS).flatMap(([kind, all]) => all.map((address) => [kind, address] as const)))(
    'are none that are %s: %s',
    (_, address) => {
      expect(isPublicAddress(address)).toBe(false);
    },
  );
});
