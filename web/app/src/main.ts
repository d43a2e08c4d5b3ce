import '@syncline/tokens/tokens.css';
import './shell/page.css';
import { mount } from 'svelte';
import App from './App.svelte';

const target = document.getElementById('app');
if (target) mount(App, { target });
