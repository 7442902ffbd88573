"""Lua: tables as modules, classes and objects, global names, and the result of `require`."""


def test_methods_of_a_table_are_those_of_the_objects_that_have_it_as_metatable(calls):
    found = calls(
        {
            "shop.lua": """
            local Till = {}
            Till.__index = Till
            function Till.new() return setmetatable({}, Till) end
            function Till:open() end
            local Other = {}
            function Other:open() end
            local Shop = {}
            local mt = { __index = Shop }
            function Shop.new()
              local self = setmetatable({ spare = Till.new() }, mt)
              self.till = Till.new()
              return self
            end
            function Shop:run()
              self.till:open()
              self.spare:open()
              self:close()
              self:none()
            end
            function Shop:close() end
            local function go(till) till:open() end
            local shop = Shop.new()
            shop:run()
            go(shop.till)
            """
        }
    )

    assert found == {
        ("Shop.new", "Till.new", "type of the receiver"),
        ("Shop.run", "Till.open", "type of the receiver"),
        ("Shop.run", "Shop.close", "type of the receiver"),
        ("go", "Till.open", "type of the receiver"),
        ("shop.lua", "Shop.new", "type of the receiver"),
        ("shop.lua", "Shop.run", "type of the receiver"),
        ("shop.lua", "go", "same file"),
    }


def test_a_table_inherits_by_its_metatable(calls):
    found = calls(
        {
            "root.lua": """
            local Root = {}
            Root.__index = Root
            function Root:new(o)
              o = o or {}
              setmetatable(o, self)
              o:init()
              return o
            end
            function Root:init() end
            function Root:check() self:step() end
            function Root:step() end
            return Root
            """,
            "app.lua": """
            local Root = require("root")
            local Shop = setmetatable({}, { __index = Root })
            function Shop:step() Root.step(self) end
            local Till = Root:new()
            function Till:init() end
            function go()
              local shop = Shop:new()
              shop:check()
              shop:step()
              Till:new():init()
            end
            """,
        }
    )

    assert found == {
        ("root.lua::Root.new", "root.lua::Root.init", "type of the receiver"),
        ("root.lua::Root.new", "app.lua::Till.init", "class hierarchy"),
        ("root.lua::Root.check", "root.lua::Root.step", "type of the receiver"),
        ("root.lua::Root.check", "app.lua::Shop.step", "class hierarchy"),
        ("app.lua::Shop.step", "root.lua::Root.step", "type of the receiver"),
        ("app.lua", "root.lua::Root.new", "type of the receiver"),
        ("app.lua::go", "root.lua::Root.new", "class hierarchy"),
        ("app.lua::go", "root.lua::Root.check", "class hierarchy"),
        ("app.lua::go", "app.lua::Shop.step", "type of the receiver"),
        ("app.lua::go", "app.lua::Till.init", "type of the receiver"),
    }


def test_what_makes_classes_is_given_their_base(calls):
    found = calls(
        {
            "class.lua": """
            local Object = {}
            Object.__index = Object
            function Object:extend()
              local cls = {}
              cls.__index = cls
              return setmetatable(cls, self)
            end
            function Object:__call()
              local object = setmetatable({}, self)
              object:new()
              return object
            end
            function Object:new() end
            return Object
            """,
            "app.lua": """
            local Object = require("class")
            local Root = Object:extend()
            function Root:new() end
            function Root:check() end
            local Shop = Root:extend()
            function Shop:new() Shop.super.new(self) end
            local class = require("library")
            local Till = class("Till", Root)
            function go()
              Shop():check()
              Till():check()
            end
            """,
        }
    )

    assert found == {
        ("class.lua::Object.__call", "class.lua::Object.new", "type of the receiver"),
        ("class.lua::Object.__call", "app.lua::Root.new", "class hierarchy"),
        ("class.lua::Object.__call", "app.lua::Shop.new", "class hierarchy"),
        ("app.lua", "class.lua::Object.extend", "type of the receiver"),
        ("app.lua::Shop.new", "app.lua::Root.new", "type of the receiver"),
        ("app.lua::go", "class.lua::Object.__call", "class hierarchy"),
        ("app.lua::go", "app.lua::Root.check", "class hierarchy"),
    }


def test_require_gives_what_the_file_returns(calls):
    found = calls(
        {
            "lib/store/init.lua": """
            local M = {}
            local function find() end
            function M.find() find() end
            return M
            """,
            "lib/text.lua": "local function trim() end\nlocal function cut() end\nreturn { trim = trim, cut = cut }\n",
            "lib/make.lua": "local function make() end\nreturn make\n",
            "lib/mixed.lua": "local M = {}\nfunction M.go() end\nreturn mixed(M)\n",
            "app.lua": """
            local store = require "store"
            local text = require("lib.text")
            local lines = require("lib.text").cut
            local make, mixed = require("lib.make"), require("lib.mixed")
            local ok, other = pcall(require, "store")
            store.find()
            text.trim()
            text.none()
            lines()
            make()
            mixed.go()
            local function run() other.find() end
            """,
        }
    )

    assert found == {
        ("lib/store/init.lua::M.find", "lib/store/init.lua::find", "same file"),
        ("app.lua", "lib/store/init.lua::M.find", "type of the receiver"),
        ("app.lua", "lib/text.lua::trim", "imported name"),
        ("app.lua", "lib/text.lua::cut", "imported name"),
        ("app.lua", "lib/make.lua::make", "imported name"),
        ("app.lua", "lib/mixed.lua::M.go", "type of the receiver"),
        ("app.lua::run", "lib/store/init.lua::M.find", "type of the receiver"),
    }


def test_names_that_are_not_local_are_those_of_all_files(calls):
    found = calls(
        {
            "util.lua": "function trim() end\nlocal function cut() end\nConfig = {}\nfunction Config.load() end\n",
            "app.lua": """
            local function map() end
            function run(cut)
              trim()
              cut()
              Config.load()
              _G.trim()
              map()
            end
            local trim = string.lower
            """,
            "other.lua": "dofile('util.lua')\nlocal trim = print\nlocal function go() trim() end\nrun()\n",
            "last.lua": "function go() trim() end\n",
        }
    )

    assert found == {
        ("app.lua::run", "util.lua::trim", "same package"),
        ("app.lua::run", "util.lua::Config.load", "type of the receiver"),
        ("app.lua::run", "app.lua::map", "same file"),
        ("other.lua", "app.lua::run", "same package"),
        ("last.lua::go", "util.lua::trim", "same package"),
    }


def test_a_file_may_add_to_a_table_of_the_library(calls):
    found = calls(
        {
            "more.lua": "function table.find() end\n",
            "app.lua": """
            local first, second, third, last = none, none, none, table.find
            local function run(name)
              table.find()
              table.insert(name, 1)
            end
            last()
            """,
        }
    )

    assert found == {
        ("app.lua::run", "more.lua::table.find", "type of the receiver"),
        ("app.lua", "more.lua::table.find", "type of the receiver"),
    }


def test_a_function_gives_a_table_with_functions_of_its_own(calls):
    found = calls(
        {
            "app.lua": """
            local function counter()
              local self = {}
              local function add() end
              function self.up() add() end
              self.down = add
              return self
            end
            local function plain()
              local function add() end
              return { add = add, none = 1 }
            end
            local one, two = counter(), plain()
            one.up()
            one.down()
            two.add()
            one.none()
            """
        }
    )

    assert found == {
        ("counter.self.up", "counter.add", "same scope"),
        ("app.lua", "counter", "same file"),
        ("app.lua", "plain", "same file"),
        ("app.lua", "counter.self.up", "type of the receiver"),
        ("app.lua", "counter.add", "type of the receiver"),
        ("app.lua", "plain.add", "type of the receiver"),
    }


def test_functions_in_a_table_are_found_by_computed_names(calls):
    found = calls(
        {
            "app.lua": """
            local function find() end
            local function late() end
            local commands = { open = function() end, find = find, [1] = none }
            local registry = {}
            local function add(name, fn) registry[name] = fn end
            add("late", late)
            local Class = {}
            function Class:method() end
            local function run(name)
              commands[name]()
              local found = registry[name]
              found()
              Class[name]()
            end
            """
        }
    )

    assert found == {
        ("app.lua", "add", "same file"),
        ("run", "commands.open", "element of a collection"),
        ("run", "find", "element of a collection"),
        ("run", "late", "argument of a caller"),
    }


def test_metatables_say_what_is_called(calls):
    found = calls(
        {
            "app.lua": """
            local Shop = setmetatable({}, { __call = function(cls) return cls.new() end })
            function Shop.new() return setmetatable({}, { __index = Shop }) end
            function Shop:check() end
            function Shop.__add(one, other) one:check() end
            local Till = setmetatable({}, { __call = function(cls) end })
            function Till.new() end
            Shop():check()
            pcall(Till)
            pcall(Till.new)
            """
        }
    )

    assert found == {
        ("__call", "Shop.new", "type of the receiver"),
        ("Shop.__add", "Shop.check", "type of the receiver"),
        ("app.lua", "__call", "class hierarchy"),
        ("app.lua", "__call~2", "class hierarchy"),
        ("app.lua", "Shop.check", "type of the receiver"),
        ("app.lua", "Till.new", "type of the receiver"),
    }


def test_items_of_a_table_are_what_is_put_into_it(calls):
    found = calls(
        {
            "app.lua": """
            local Till = {}
            Till.__index = Till
            function Till.new() return setmetatable({}, Till) end
            function Till:open() end
            local Shop = {}
            function Shop:add(till)
              self.tills[#self.tills + 1] = till
              table.insert(self.spare, Till.new())
            end
            function Shop:run()
              for _, till in ipairs(self.tills) do till:open() end
            end
            function Shop:rest()
              for name, till in pairs(self.spare) do name:open() till:open() end
            end
            Shop:add(Till.new())
            """
        }
    )

    assert found == {
        ("Shop.add", "Till.new", "type of the receiver"),
        ("Shop.run", "Till.open", "type of the receiver"),
        ("Shop.rest", "Till.open", "type of the receiver"),
        ("app.lua", "Till.new", "type of the receiver"),
        ("app.lua", "Shop.add", "type of the receiver"),
    }
