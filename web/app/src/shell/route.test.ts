import { expect, test } from 'vitest';
import {
  ACCOUNT,
  addressOf,
  addressOfLink,
  addressOfPair,
  addressOfStorage,
  addressOfSync,
  addressOfTrash,
  LAB,
  PAIR,
  routeOf,
  STORAGE,
  SYNC,
} from './route.ts';

test('every address leads to the view that it is made for', () => {
  expect(routeOf(ACCOUNT)).toEqual({ view: 'account' });
  expect(routeOf(LAB)).toEqual({ view: 'lab' });
  expect(routeOf(STORAGE)).toEqual({ view: 'storage', workspace: null });
  expect(routeOf(addressOfStorage('My notes'))).toEqual({ view: 'storage', workspace: 'My notes' });
  expect(routeOf(SYNC)).toEqual({ view: 'sync', workspace: null, path: '' });
  const synced = addressOfSync('ada/Notes', 'a/b%20c');
  expect(routeOf(synced)).toEqual({ view: 'sync', workspace: 'ada/Notes', path: 'a/b%20c' });
  expect(routeOf(addressOf('id', 'a/10%25'))).toEqual({
    view: 'files',
    workspace: 'id',
    path: 'a/10%25',
  });
  expect(routeOf(addressOf('My notes'))).toEqual({
    view: 'files',
    workspace: 'My notes',
    path: '',
  });
  expect(routeOf(addressOfTrash('My notes'))).toEqual({ view: 'trash', workspace: 'My notes' });
  expect(routeOf('#/join/SECRET')).toEqual({ view: 'join', secret: 'SECRET' });
  expect(routeOf(PAIR)).toEqual({ view: 'pair', code: null });
  expect(routeOf(addressOfPair('AB12-CD34'))).toEqual({ view: 'pair', code: 'AB12-CD34' });
  expect(routeOf(addressOfLink('SECRET'))).toEqual({ view: 'link', secret: 'SECRET', path: '' });
  expect(routeOf(addressOfLink('SECRET', 'sub/x'))).toEqual({
    view: 'link',
    secret: 'SECRET',
    path: 'sub/x',
  });
});

test('whatever is no address leads to the workspaces', () => {
  for (const hash of [
    '',
    '#',
    '#/',
    '#/x/y',
    '#/s/',
    '#/join/',
    '#/join/a/b',
    '#/pair/',
    '#/pair/a/b',
    '#javascript:alert(1)',
  ]) {
    expect(routeOf(hash), hash).toEqual({ view: 'workspaces' });
  }
  expect(routeOf('#/s/%zz')).toEqual({ view: 'link', secret: '%zz', path: '' });
});
