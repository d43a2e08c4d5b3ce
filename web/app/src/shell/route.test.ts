import { expect, test } from 'vitest';
import {
  ACCOUNT,
  addressOf,
  addressOfLink,
  addressOfSync,
  addressOfTrash,
  LAB,
  routeOf,
  SYNC,
} from './route.ts';

test('every address leads to the view that it is made for', () => {
  expect(routeOf(ACCOUNT)).toEqual({ view: 'account' });
  expect(routeOf(LAB)).toEqual({ view: 'lab' });
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
    '#javascript:alert(1)',
  ]) {
    expect(routeOf(hash), hash).toEqual({ view: 'workspaces' });
  }
  expect(routeOf('#/s/%zz')).toEqual({ view: 'link', secret: '%zz', path: '' });
});
