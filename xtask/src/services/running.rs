//! The services that run, as they stand in a file: for the tests that use them, and for those that trouble them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Map, Value, json};

use super::processes::{self, Process};
use super::{place, postgresql};
use crate::failure::{Context, Failure, Result, fail};
use crate::process;

/// One server that runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Service {
    /// Its short name.
    pub name: String,
    /// The program and its version, as it says itself.
    pub version: String,
    /// The address of a store on it, as `storage::open_with` takes it.
    pub url: String,
    /// The credentials of that store.
    pub credentials: Vec<(String, String)>,
    /// Its processes, each the leader of a group.
    pub processes: Vec<Process>,
}

/// All that run, and the folder of their data.
#[derive(Debug)]
pub struct Services {
    path: PathBuf,
    folder: PathBuf,
    services: Vec<Service>,
}

impl Services {
    /// None yet; they will be written down in the file `path`.
    pub(super) fn new(path: PathBuf, folder: PathBuf) -> Self {
        Self { path, folder, services: Vec::new() }
    }

    /// Reads what runs from the file that `cargo xtask services` wrote.
    pub fn read(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path).context(path.display())?;
        let value: Value = serde_json::from_str(&text).context(path.display())?;
        let missing = || Failure::new(format!("{} names no services", path.display()));
        let folder = value["folder"].as_str().ok_or_else(missing)?.into();
        let services = value["services"].as_array().ok_or_else(missing)?;
        let services = services.iter().map(Service::from_json).collect::<Result<_>>()?;
        Ok(Self { path: path.to_owned(), folder, services })
    }

    /// The folder of all data; each service has a folder of its name in it.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// All of them.
    pub fn services(&self) -> &[Service] {
        &self.services
    }

    /// The one of this name.
    pub fn service(&self, name: &str) -> Result<&Service> {
        let found = self.services.iter().find(|service| service.name == name);
        found.ok_or_else(|| Failure::new(format!("no service '{name}' runs")))
    }

    /// Whether all of its processes run.
    pub fn is_running(&self, service: &Service) -> bool {
        service.processes.iter().all(|process| process.is_ours(&self.folder))
    }

    /// Ends a service at once, in the middle of whatever it does; its data stay.
    pub fn kill(&self, name: &str) -> Result<()> {
        for process in self.ours(name)? {
            process.kill()?;
        }
        // It had no time to remove these, and would take whoever has the number by now for itself.
        remove_process_id_files(&self.folder.join(name))
    }

    /// Stops a service where it stands: it is there, and answers nobody.
    pub fn freeze(&self, name: &str) -> Result<()> {
        self.ours(name)?.into_iter().for_each(Process::freeze);
        Ok(())
    }

    /// Lets a frozen service go on.
    pub fn thaw(&self, name: &str) -> Result<()> {
        self.ours(name)?.into_iter().for_each(Process::thaw);
        Ok(())
    }

    /// Starts a service again that was killed, at the same address, over the same data.
    pub fn revive(&mut self, name: &str) -> Result<()> {
        let folder = self.folder.clone();
        let found = self.services.iter_mut().filter(|service| service.name == name);
        let processes = found.flat_map(|service| &mut service.processes);
        for process in processes.filter(|process| !process.is_ours(&folder)) {
            process.start_again().context(name)?;
        }
        if name == postgresql::NAME {
            postgresql::wait_until_ready(self.service(name)?)?;
        }
        self.write()
    }

    /// Notes one more.
    pub(super) fn add(&mut self, service: Service) -> Result<()> {
        self.services.push(service);
        self.write()
    }

    /// Ends all of them and removes their data.
    pub(super) fn stop(&self) -> Result<()> {
        let processes = self.services.iter().flat_map(|service| &service.processes);
        let ours: Vec<_> = processes.filter(|process| process.is_ours(&self.folder)).collect();
        processes::end(&ours)?;
        if place::is_service_folder(&self.folder) {
            unmount_below(&self.folder)?;
            fs::remove_dir_all(&self.folder).context(self.folder.display())?;
        }
        match self.path.exists() {
            true => fs::remove_file(&self.path).context(self.path.display()),
            false => Ok(()),
        }
    }

    /// The processes of a service that runs.
    fn ours(&self, name: &str) -> Result<Vec<&Process>> {
        let processes = self.service(name)?.processes.iter();
        let ours: Vec<_> = processes.filter(|process| process.is_ours(&self.folder)).collect();
        if ours.is_empty() { fail(format!("the service '{name}' does not run")) } else { Ok(ours) }
    }

    fn write(&self) -> Result<()> {
        let services: Vec<_> = self.services.iter().map(Service::to_json).collect();
        let state = json!({ "folder": self.folder, "services": services });
        if let Some(parent) = self.path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(&self.path, serde_json::to_string_pretty(&state)?).context(self.path.display())
    }
}

impl Service {
    /// The credential of this name.
    pub fn credential(&self, name: &str) -> Result<&str> {
        let found = self.credentials.iter().find(|(known, _)| known == name);
        let absent = || Failure::new(format!("the service '{}' has no '{name}'", self.name));
        found.map(|(_, value)| value.as_str()).ok_or_else(absent)
    }

    fn to_json(&self) -> Value {
        let credentials: Map<_, _> =
            self.credentials.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
        let processes: Vec<_> = self.processes.iter().map(Process::to_json).collect();
        json!({
            "name": self.name,
            "version": self.version,
            "url": self.url,
            "credentials": credentials,
            "processes": processes,
        })
    }

    fn from_json(value: &Value) -> Result<Self> {
        let text = |name: &str| {
            let text = value[name].as_str().map(str::to_owned);
            text.ok_or_else(|| Failure::new(format!("a service without '{name}'")))
        };
        let credentials = value["credentials"].as_object().into_iter().flatten();
        let credentials = credentials
            .filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())));
        let processes: Vec<_> = value["processes"].as_array().into_iter().flatten().collect();
        if processes.is_empty() {
            return fail(format!("the service '{}' has no processes", text("name")?));
        }
        Ok(Self {
            name: text("name")?,
            version: text("version")?,
            url: text("url")?,
            credentials: credentials.collect(),
            processes: processes.into_iter().map(Process::from_json).collect::<Result<_>>()?,
        })
    }
}

/// Unmounts what a test that was ended has left mounted in the folder: it would keep the folder from being removed.
fn unmount_below(folder: &Path) -> Result<()> {
    let mounts = fs::read_to_string("/proc/mounts").unwrap_or_default();
    let places = mounts.lines().filter_map(|line| line.split(' ').nth(1)).map(Path::new);
    for place in places.filter(|place| place.starts_with(folder)) {
        process::output(Command::new("umount").arg(place))?;
    }
    Ok(())
}

fn remove_process_id_files(folder: &Path) -> Result<()> {
    for entry in fs::read_dir(folder).context(folder.display())?.flatten() {
        let path = entry.path();
        if path.is_dir() && !path.is_symlink() {
            remove_process_id_files(&path)?;
        } else if path.extension().is_some_and(|ending| ending == "pid") {
            fs::remove_file(&path).context(path.display())?;
        }
    }
    Ok(())
}
